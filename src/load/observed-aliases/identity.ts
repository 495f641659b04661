import { addDays } from '../../core/days.ts';

/** The names that a table has for an instrument, and their first day; '' and 0 for names that it does not have. */
export interface ObservedAlias {
  readonly exchange: string;
  readonly symbol: string;
  readonly series: string;
  readonly isin: string;
  readonly scripCode: number;
  /** Observed aliases with the same link belong to one instrument. */
  readonly link: string;
  readonly firstSeen: string;
}

/** The instrument of an observed alias, and its precedence if several share a symbol without series, or an ISIN. */
interface Identity {
  readonly instrumentId: string;
  readonly precedence: Precedence;
}

/** 0: the share or fund that a symbol alone means. 1: another security of that symbol. 2: a second line of a share. */
type Precedence = 0 | 1 | 2;

/** NSE series between which a share or fund moves: at any time it trades in one of them. */
const SHARES = new Set(['', 'EQ', 'BE', 'BZ', 'SM', 'ST', 'SZ', 'IV', 'RR']);

/** NSE series in which a share trades in addition to its usual one: T+0 settlement, block deals, institutions. */
const SECOND_LINES = new Set(['T0', 'BL', 'IL']);

/** BSE marks the T+0 line of a share with this, and gives it another scrip code. */
const SECOND_LINE_SUFFIX = '#';

/** Length of the part of an ISIN that identifies country and issuer. */
const ISSUER = 7;

/** ISINs of fund units. A fund that moves to another fund house gets an ISIN of that house and keeps its symbol. */
const FUND = 'INF';

/**
 * Finds out which observed aliases belong to the same instrument, by the rules of docs/analysts.md.
 * The result depends on the aliases alone, not on their order.
 *
 * @param aliases all of one exchange.
 * @returns one identity per alias, in the same order.
 */
export function identify(aliases: readonly ObservedAlias[]): Identity[] {
  const nodes = new Components();
  const codes = codesByIsin(aliases);
  const named = aliases.map((alias) => nameInstrument(alias, codes));
  const ownership = computeOwnership(named);
  const ownNode = named.map((name) => {
    const { alias, group, securityCode, precedence } = name;
    if (precedence === 2 && alias.exchange !== 'BSE') return null;
    const owner = group === '' ? securityCode : `${group}|${findOwner(ownership.get(group), name)}`;
    if (securityCode !== '') nodes.join(`owner ${owner}`, `securityCode ${securityCode}`);
    if (alias.link !== '') nodes.join(`owner ${owner}`, `link ${alias.link}`);
    return `owner ${owner}`;
  });

  const ids = representatives(named, ownNode, nodes);
  return named.map(({ alias, group, securityCode, precedence }, at) => {
    const own = ownNode[at];
    if (own !== null && own !== undefined) {
      return { instrumentId: ids.get(nodes.rootOf(own)) as string, precedence };
    }
    const byIsin = securityCode === '' ? undefined : ids.get(nodes.rootOf(`securityCode ${securityCode}`));
    const bySymbol = ids.get(
      nodes.rootOf(
        `owner ${group}|${findOwner(ownership.get(group), { alias, securityCode: '', precedence })}`,
      ),
    );
    const share = byIsin ?? bySymbol ?? `${alias.exchange}:${securityCode || group}`;
    return { instrumentId: `${share}/${alias.series}`, precedence };
  });
}

interface Named {
  readonly alias: ObservedAlias;
  /** The name that means the same instrument until another instrument takes it; '' if there is no symbol. */
  readonly group: string;
  /** The code that never means two instruments: the scrip code on BSE, the ISIN on NSE; '' if it is not known. */
  readonly securityCode: string;
  readonly precedence: Precedence;
}

function nameInstrument(alias: ObservedAlias, codes: ReadonlyMap<string, string>): Named {
  const { exchange, symbol, series, isin, scripCode } = alias;
  if (exchange === 'BSE') {
    const precedence = symbol.endsWith(SECOND_LINE_SUFFIX) ? 2 : 0;
    const securityCode = scripCode > 0 ? String(scripCode) : (codes.get(isin) ?? '');
    return { alias, group: symbol || (securityCode === '' ? isin : ''), securityCode, precedence };
  }
  if (SECOND_LINES.has(series)) return { alias, group: symbol, securityCode: isin, precedence: 2 };
  if (SHARES.has(series) || symbol === '') return { alias, group: symbol, securityCode: isin, precedence: 0 };
  return { alias, group: `${symbol}/${series}`, securityCode: isin, precedence: 1 };
}

/** BSE's scrip codes by ISIN, for records with only the ISIN: the first code seen, without second lines. */
function codesByIsin(aliases: readonly ObservedAlias[]): Map<string, string> {
  const codes = new Map<string, string>();
  const coded = aliases
    .filter(({ exchange, isin, scripCode }) => exchange === 'BSE' && isin !== '' && scripCode > 0)
    .filter(({ symbol }) => !symbol.endsWith(SECOND_LINE_SUFFIX))
    .sort((a, b) => compare(a.firstSeen, b.firstSeen) || a.scripCode - b.scripCode);
  for (const { isin, scripCode } of coded) {
    if (!codes.has(isin)) codes.set(isin, String(scripCode));
  }
  return codes;
}

/** The owner of a security code: as long as it stays the same, the symbol means the same instrument. */
function findIssuer({ alias, securityCode, precedence }: Omit<Named, 'group'>): string {
  if (alias.exchange === 'BSE' || precedence !== 0) return securityCode;
  return securityCode.startsWith(FUND) ? FUND : securityCode.slice(0, ISSUER);
}

/** From which day on a symbol belonged to an owner. */
type Era = { readonly from: string; readonly owner: string };

/** What is known about who had a symbol when. */
interface Ownership {
  readonly eras: readonly Era[];
  /** Days from which on the symbol was given up: from then on it means another instrument. */
  readonly givenUp: readonly string[];
}

function computeOwnership(named: readonly Named[]): Map<string, Ownership> {
  const known = new Map<string, { eras: Era[]; givenUp: string[] }>();
  const of = (group: string) => {
    const ownership = known.get(group) ?? { eras: [], givenUp: [] };
    known.set(group, ownership);
    return ownership;
  };
  for (const name of named) {
    if (name.group === '' || name.securityCode === '') continue;
    if (name.precedence === 2 && name.alias.exchange !== 'BSE') continue;
    of(name.group).eras.push({ from: name.alias.firstSeen, owner: findIssuer(name) });
  }
  for (const [group, from] of symbolsGivenUp(named)) of(group).givenUp.push(from);
  for (const { eras, givenUp } of known.values()) {
    eras.sort((a, b) => compare(a.from, b.from) || compare(a.owner, b.owner));
    givenUp.sort(compare);
  }
  return known;
}

/** Symbols that were replaced according to a list of changes, and the first day of the new symbol. */
function symbolsGivenUp(named: readonly Named[]): (readonly [group: string, from: string])[] {
  const links = new Map<
    string,
    { readonly symbol: string; readonly group: string; readonly firstSeen: string }[]
  >();
  for (const { alias, group } of named) {
    const { link, symbol, firstSeen } = alias;
    if (link === '' || group === '') continue;
    const sides = links.get(link) ?? [];
    links.set(link, sides);
    sides.push({ symbol, group, firstSeen });
  }
  return [...links.values()].flatMap((sides) => {
    const [before, after, ...more] = sides.toSorted((a, b) => compare(a.firstSeen, b.firstSeen));
    if (before === undefined || after === undefined || more.length > 0) return [];
    const changed = before.symbol !== after.symbol && after.firstSeen === addDays(before.firstSeen, 1);
    return changed ? [[before.group, after.firstSeen] as const] : [];
  });
}

/** Begins the owner's name if only the day since which it has the symbol is known. */
const SINCE = 'since ';

/**
 * The owner of the symbol on the day it was seen: by its own security code, else that of the last era before that day,
 * else that of the first era after it, unless the symbol was given up in between.
 */
function findOwner(ownership: Ownership | undefined, name: Omit<Named, 'group'>): string {
  const { firstSeen } = name.alias;
  if (name.securityCode !== '') return findIssuer(name);
  if (ownership === undefined) return '';
  const begin = ownership.givenUp.findLast((day) => day <= firstSeen) ?? '';
  const end = ownership.givenUp.find((day) => day > firstSeen) ?? '9999';
  const eras = ownership.eras.filter(({ from }) => from >= begin && from < end);
  const era = eras.findLast(({ from }) => from <= firstSeen) ?? eras[0];
  return era?.owner ?? (begin === '' ? '' : `${SINCE}${begin}`);
}

/** The id of each component: the security code seen first, else the group seen first. */
function representatives(
  named: readonly Named[],
  ownNode: readonly (string | null)[],
  nodes: Components,
): Map<string, string> {
  const best = new Map<string, { readonly rank: string; readonly id: string }>();
  for (const [at, { alias, group, securityCode }] of named.entries()) {
    const own = ownNode[at];
    if (own === null || own === undefined) continue;
    const root = nodes.rootOf(own);
    // A symbol that another instrument had before means two: the later one's id has the day on which it began.
    const since = securityCode === '' ? own.indexOf(`|${SINCE}`) : -1;
    const name = securityCode || (since === -1 ? group : `${group}@${own.slice(since + 1 + SINCE.length)}`);
    const rank = `${securityCode === '' ? 1 : 0}|${alias.firstSeen}|${name}`;
    const known = best.get(root);
    if (known === undefined || rank < known.rank) {
      best.set(root, { rank, id: `${alias.exchange}:${name}` });
    }
  }
  return new Map([...best].map(([root, { id }]) => [root, id]));
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

/** Connected components of a graph (union-find). */
class Components {
  private readonly parents = new Map<string, string>();

  rootOf(node: string): string {
    let root = node;
    for (let parent = this.parents.get(root); parent !== undefined; parent = this.parents.get(root))
      root = parent;
    // Path compression.
    for (let at = node; at !== root; ) {
      const parent = this.parents.get(at) ?? root;
      this.parents.set(at, root);
      at = parent;
    }
    return root;
  }

  join(a: string, b: string): void {
    const [left, right] = [this.rootOf(a), this.rootOf(b)];
    if (left !== right) this.parents.set(left, right);
  }
}

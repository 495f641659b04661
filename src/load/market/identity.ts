/** The names under which a table showed an instrument, and the first day; '' and 0 where the table has none. */
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

/** The instrument an observed alias belongs to, and its precedence where several share a bare symbol or ISIN. */
interface Identity {
  readonly instrumentId: string;
  readonly precedence: Precedence;
}

/** 0: the share or fund a bare symbol means. 1: another security of that symbol. 2: a second line of a share. */
export type Precedence = 0 | 1 | 2;

/** NSE series a share or fund moves between: at any time it trades in one of them. */
const SHARES = new Set(['', 'EQ', 'BE', 'BZ', 'SM', 'ST', 'SZ', 'IV', 'RR']);

/** NSE series in which a share trades beside its usual one: T+0 settlement, block deals, institutions. */
const SECOND_LINES = new Set(['T0', 'BL', 'IL']);

/** BSE marks the T+0 line of a share by this, and gives it a scrip code of its own. */
const SECOND_LINE_SUFFIX = '#';

/** Length of the part of an ISIN that names country and issuer. */
const ISSUER = 7;

/** Units of Indian funds: a fund that moves to another fund house gets an ISIN of that house and keeps its symbol. */
const FUND = 'INF';

/**
 * Finds out which observed aliases belong to the same instrument, by the rules of docs/instruments.md.
 * The result depends on the aliases alone, not on their order.
 *
 * @param aliases of one exchange, in whole families: all that share a symbol, an ISIN (NSE) or a
 *   scrip code (BSE) with one another, directly or by others.
 * @returns one identity per alias, in the same order.
 */
export function identify(aliases: readonly ObservedAlias[]): Identity[] {
  const nodes = new Components();
  const codes = codesByIsin(aliases);
  const named = aliases.map((alias) => nameOf(alias, codes));
  const eras = erasOf(aliases, named);
  const ownNode = aliases.map((alias, at) => {
    const { group, securityCode, precedence } = named[at] as Named;
    if (precedence === 2 && alias.exchange !== 'BSE') return null;
    const owner =
      group === '' ? securityCode : `${group}|${ownerOf(eras.get(group), alias, named[at] as Named)}`;
    if (securityCode !== '') nodes.join(`owner ${owner}`, `securityCode ${securityCode}`);
    if (alias.link !== '') nodes.join(`owner ${owner}`, `link ${alias.link}`);
    return `owner ${owner}`;
  });

  const ids = representatives(aliases, named, ownNode, nodes);
  return aliases.map((alias, at) => {
    const { group, securityCode, precedence } = named[at] as Named;
    const own = ownNode[at];
    if (own !== null && own !== undefined) {
      return { instrumentId: ids.get(nodes.rootOf(own)) as string, precedence };
    }
    const byIsin = securityCode === '' ? undefined : ids.get(nodes.rootOf(`securityCode ${securityCode}`));
    const bySymbol = ids.get(
      nodes.rootOf(
        `owner ${group}|${ownerOf(eras.get(group), alias, { group, securityCode: '', precedence })}`,
      ),
    );
    const share = byIsin ?? bySymbol ?? `${alias.exchange}:${securityCode || group}`;
    return { instrumentId: `${share}/${alias.series}`, precedence };
  });
}

interface Named {
  /** The name that means the same instrument until another takes it; '' where there is no symbol. */
  readonly group: string;
  /** What never names two instruments: BSE's scrip code, the ISIN on NSE; '' where it is not known. */
  readonly securityCode: string;
  readonly precedence: Precedence;
}

function nameOf(
  { exchange, symbol, series, isin, scripCode }: ObservedAlias,
  codes: ReadonlyMap<string, string>,
): Named {
  if (exchange === 'BSE') {
    const precedence = symbol.endsWith(SECOND_LINE_SUFFIX) ? 2 : 0;
    const securityCode = scripCode > 0 ? String(scripCode) : (codes.get(isin) ?? '');
    return { group: symbol || (securityCode === '' ? isin : ''), securityCode, precedence };
  }
  if (SECOND_LINES.has(series)) return { group: symbol, securityCode: isin, precedence: 2 };
  if (SHARES.has(series) || symbol === '') return { group: symbol, securityCode: isin, precedence: 0 };
  return { group: `${symbol}/${series}`, securityCode: isin, precedence: 1 };
}

/** Scrip codes of BSE by ISIN, for records that have the ISIN alone: the code seen first, second lines left out. */
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

/** Who owns a security code: while the owner stays the same, the symbol goes on meaning the same instrument. */
function issuerOf({ securityCode, precedence }: Named, exchange: string): string {
  if (exchange === 'BSE' || precedence !== 0) return securityCode;
  return securityCode.startsWith(FUND) ? FUND : securityCode.slice(0, ISSUER);
}

/** From which day on a symbol belonged to an owner. */
type Era = { readonly from: string; readonly owner: string };

function erasOf(aliases: readonly ObservedAlias[], named: readonly Named[]): Map<string, Era[]> {
  const eras = new Map<string, Era[]>();
  aliases.forEach((alias, at) => {
    const name = named[at] as Named;
    if (name.group === '' || name.securityCode === '') return;
    if (name.precedence === 2 && alias.exchange !== 'BSE') return;
    const era = { from: alias.firstSeen, owner: issuerOf(name, alias.exchange) };
    const known = eras.get(name.group);
    if (known === undefined) eras.set(name.group, [era]);
    else known.push(era);
  });
  for (const list of eras.values()) {
    list.sort((a, b) => compare(a.from, b.from) || compare(a.owner, b.owner));
  }
  return eras;
}

/** The owner of the symbol on the day it was seen: by its own security code, else by the era before, else by the one after. */
function ownerOf(
  eras: readonly Era[] | undefined,
  { exchange, firstSeen }: ObservedAlias,
  name: Named,
): string {
  if (name.securityCode !== '') return issuerOf(name, exchange);
  if (eras === undefined) return '';
  return (eras.findLast((era) => era.from <= firstSeen) ?? eras[0])?.owner ?? '';
}

/** The id of each component: the security code seen first, else the group seen first. */
function representatives(
  aliases: readonly ObservedAlias[],
  named: readonly Named[],
  ownNode: readonly (string | null)[],
  nodes: Components,
): Map<string, string> {
  const best = new Map<string, { readonly rank: string; readonly id: string }>();
  aliases.forEach((alias, at) => {
    const own = ownNode[at];
    if (own === null || own === undefined) return;
    const { group, securityCode } = named[at] as Named;
    const root = nodes.rootOf(own);
    const name = securityCode || group;
    const rank = `${securityCode === '' ? 1 : 0}|${alias.firstSeen}|${name}`;
    const known = best.get(root);
    if (known === undefined || rank < known.rank) {
      best.set(root, { rank, id: `${alias.exchange}:${name}` });
    }
  });
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
      const parent = this.parents.get(at) as string;
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

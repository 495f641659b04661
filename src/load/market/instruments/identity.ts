/** What a table called an instrument, and when that was first seen; '' and 0 where it does not say. */
export interface ObservedAlias {
  readonly exchange: string;
  readonly symbol: string;
  readonly series: string;
  readonly isin: string;
  readonly scripCode: number;
  /** Sightings of one link are of one instrument. */
  readonly link: string;
  readonly firstSeen: string;
}

/** Whom a sighting is of, and whether it is what a bare symbol or ISIN means. */
export interface Identity {
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

/** Units of Indian funds: a fund that goes over to another house gets an ISIN of that house, and keeps its symbol. */
const FUND = 'INF';

/**
 * Tells which sightings are of the same instrument: the rules are those of docs/instruments.md. The
 * outcome follows from the sightings alone, not from their order.
 *
 * @param sightings of one exchange, whole families: all that share a symbol, an ISIN (NSE) or a
 *   scrip code (BSE) with one another, directly or by others.
 * @returns one identity per sighting, in the same order.
 */
export function identify(sightings: readonly ObservedAlias[]): Identity[] {
  const nodes = new Components();
  const codes = codesByIsin(sightings);
  const named = sightings.map((sighting) => nameOf(sighting, codes));
  const eras = erasOf(sightings, named);
  const ownNode = sightings.map((sighting, at) => {
    const { group, hard, precedence } = named[at] as Named;
    if (precedence === 2 && sighting.exchange !== 'BSE') return null;
    const owner = group === '' ? hard : `${group}|${ownerOf(eras.get(group), sighting, named[at] as Named)}`;
    if (hard !== '') nodes.join(`owner ${owner}`, `hard ${hard}`);
    if (sighting.link !== '') nodes.join(`owner ${owner}`, `link ${sighting.link}`);
    return `owner ${owner}`;
  });

  const ids = representatives(sightings, named, ownNode, nodes);
  return sightings.map((sighting, at) => {
    const { group, hard, precedence } = named[at] as Named;
    const own = ownNode[at];
    if (own !== null && own !== undefined) {
      return { instrumentId: ids.get(nodes.rootOf(own)) as string, precedence };
    }
    const byIsin = hard === '' ? undefined : ids.get(nodes.rootOf(`hard ${hard}`));
    const bySymbol = ids.get(
      nodes.rootOf(`owner ${group}|${ownerOf(eras.get(group), sighting, { group, hard: '', precedence })}`),
    );
    const share = byIsin ?? bySymbol ?? `${sighting.exchange}:${hard || group}`;
    return { instrumentId: `${share}/${sighting.series}`, precedence };
  });
}

interface Named {
  /** What keeps naming the same instrument while nobody else takes it; '' where there is no symbol. */
  readonly group: string;
  /** What never names two instruments: BSE's scrip code, the ISIN on NSE; '' where it is not known. */
  readonly hard: string;
  readonly precedence: Precedence;
}

function nameOf(
  { exchange, symbol, series, isin, scripCode }: ObservedAlias,
  codes: ReadonlyMap<string, string>,
): Named {
  if (exchange === 'BSE') {
    const precedence = symbol.endsWith(SECOND_LINE_SUFFIX) ? 2 : 0;
    const hard = scripCode > 0 ? String(scripCode) : (codes.get(isin) ?? '');
    return { group: symbol || (hard === '' ? isin : ''), hard, precedence };
  }
  if (SECOND_LINES.has(series)) return { group: symbol, hard: isin, precedence: 2 };
  if (SHARES.has(series) || symbol === '') return { group: symbol, hard: isin, precedence: 0 };
  return { group: `${symbol}/${series}`, hard: isin, precedence: 1 };
}

/** Scrip codes of BSE by ISIN, for records that name the ISIN alone; the code seen first, of shares themselves. */
function codesByIsin(sightings: readonly ObservedAlias[]): Map<string, string> {
  const codes = new Map<string, string>();
  const coded = sightings
    .filter(({ exchange, isin, scripCode }) => exchange === 'BSE' && isin !== '' && scripCode > 0)
    .filter(({ symbol }) => !symbol.endsWith(SECOND_LINE_SUFFIX))
    .sort((a, b) => compare(a.firstSeen, b.firstSeen) || a.scripCode - b.scripCode);
  for (const { isin, scripCode } of coded) {
    if (!codes.has(isin)) codes.set(isin, String(scripCode));
  }
  return codes;
}

/** Whose a hard name is, as far as a symbol goes on meaning the same instrument. */
function issuerOf({ hard, precedence }: Named, exchange: string): string {
  if (exchange === 'BSE' || precedence !== 0) return hard;
  return hard.startsWith(FUND) ? FUND : hard.slice(0, ISSUER);
}

/** From when on a symbol was whose; ascending. */
type Era = { readonly from: string; readonly owner: string };

function erasOf(sightings: readonly ObservedAlias[], named: readonly Named[]): Map<string, Era[]> {
  const eras = new Map<string, Era[]>();
  sightings.forEach((sighting, at) => {
    const name = named[at] as Named;
    if (name.group === '' || name.hard === '') return;
    if (name.precedence === 2 && sighting.exchange !== 'BSE') return;
    const era = { from: sighting.firstSeen, owner: issuerOf(name, sighting.exchange) };
    const known = eras.get(name.group);
    if (known === undefined) eras.set(name.group, [era]);
    else known.push(era);
  });
  for (const list of eras.values()) {
    list.sort((a, b) => compare(a.from, b.from) || compare(a.owner, b.owner));
  }
  return eras;
}

/** Whose the symbol was when it was seen: its own hard name says so, else the one before, else the one after. */
function ownerOf(
  eras: readonly Era[] | undefined,
  { exchange, firstSeen }: ObservedAlias,
  name: Named,
): string {
  if (name.hard !== '') return issuerOf(name, exchange);
  if (eras === undefined) return '';
  return (eras.findLast((era) => era.from <= firstSeen) ?? eras[0])?.owner ?? '';
}

/** The id of each component: its hard name that was seen first, else its group that was. */
function representatives(
  sightings: readonly ObservedAlias[],
  named: readonly Named[],
  ownNode: readonly (string | null)[],
  nodes: Components,
): Map<string, string> {
  const best = new Map<string, { readonly rank: string; readonly id: string }>();
  sightings.forEach((sighting, at) => {
    const own = ownNode[at];
    if (own === null || own === undefined) return;
    const { group, hard } = named[at] as Named;
    const root = nodes.rootOf(own);
    const name = hard || group;
    const rank = `${hard === '' ? 1 : 0}|${sighting.firstSeen}|${name}`;
    const known = best.get(root);
    if (known === undefined || rank < known.rank) {
      best.set(root, { rank, id: `${sighting.exchange}:${name}` });
    }
  });
  return new Map([...best].map(([root, { id }]) => [root, id]));
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

/** Which nodes hang together. */
class Components {
  private readonly parents = new Map<string, string>();

  rootOf(node: string): string {
    let root = node;
    for (let above = this.parents.get(root); above !== undefined; above = this.parents.get(root))
      root = above;
    // Shortens the way for the next time.
    for (let at = node; at !== root; ) {
      const above = this.parents.get(at) as string;
      this.parents.set(at, root);
      at = above;
    }
    return root;
  }

  join(a: string, b: string): void {
    const [left, right] = [this.rootOf(a), this.rootOf(b)];
    if (left !== right) this.parents.set(left, right);
  }
}

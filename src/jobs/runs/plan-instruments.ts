import type { InstrumentRequest } from '../../declaration/operation.ts';
import type { PlannedWindow } from '../../state/windows/plan.ts';
import { areCovered, type Covered } from './covered.ts';
import {
  buildWindow,
  coveredFor,
  declaredOptions,
  furtherOptions,
  instrumentBatches,
  instrumentsDiffer,
  KNOWN,
  nameRequest,
  noTradingDay,
  ownOptions,
  type PlanInput,
  type PlannedRange,
  REQUESTED,
  sharedFields,
  skipAll,
} from './planned-window.ts';

/** The requests of an operation that requests data per instrument, limited to those with the chosen options. */
export function chosenRequests(input: PlanInput): readonly InstrumentRequest[] {
  const { windows } = input.operation;
  if (windows.per !== 'instrument') return [];
  const options = Object.entries(declaredOptions(input));
  const further = furtherOptions(input);
  const chosen = windows
    .requests(input)
    .filter(({ params }) => options.every(([param, value]) => params[param] === value));
  if (Object.keys(further).length === 0) return chosen;
  return chosen.map((request) => ({
    ...request,
    params: { ...request.params, ...further },
    // It may be another request than the one that is covered.
    always: true,
  }));
}

/** The requests for each instrument, in one window for those that one call can request. */
export function* planInstruments(input: PlanInput, repeated: ReadonlySet<string>): Generator<PlannedWindow> {
  const { operation, exchange, from, to } = input;
  const chosen = chosenRequests(input);
  if (chosen.length === 0) {
    if (input.tradingDays.length === 0) {
      yield noTradingDay(input);
      return;
    }
    const wanted = Object.entries(ownOptions(input)).map(([param, value]) => ` ${param} ${value}`);
    const range = `nothing to request ${from} to ${to}`;
    yield skipAll(input, wanted.length === 0 ? range : `${range} with${wanted.join(',')}`);
    return;
  }
  if (input.instruments.length === 0) {
    yield skipAll(
      input,
      `no instruments are known: no prices of ${exchange} are stored, and none are named (EOD_INSTRUMENTS)`,
    );
    return;
  }
  const params = new Map<string, InstrumentRequest['params']>();
  const requests = chosen.map((request): PlannedRequest => {
    const covered = request.always === true ? undefined : coveredFor(input, request.to, request.variant);
    // Equal params become one object, because they are compared millions of times.
    const before = params.get(request.variant) ?? request.params;
    params.set(request.variant, sameParams(before, request.params) ? before : request.params);
    return {
      request: { ...request, params: params.get(request.variant) ?? request.params },
      covered,
      isRepeated: repeated.has(nameRequest({ ...request, exchange, operation: operation.name })),
    };
  });
  const different = instrumentsDiffer(requests.map(({ covered }) => covered));
  const shared = sharedFields(input);
  const groups = different
    ? groupInstruments(input, requests)
    : [{ index: 0, instruments: input.instruments }];
  for (const { index, instruments } of groups) {
    const ranges = requestRanges(requests, index);
    for (const batch of instrumentBatches(operation, instruments)) {
      for (const range of ranges) yield buildWindow(shared, range, batch);
    }
  }
}

/** Instruments with the same covered requests, in their order; `index` is that of the first. */
interface InstrumentGroup {
  readonly index: number;
  readonly instruments: readonly string[];
}

/** The instruments that one call can request together: those with the same covered requests if it takes many. */
function groupInstruments(
  { operation, instruments }: PlanInput,
  requests: readonly PlannedRequest[],
): InstrumentGroup[] {
  if (operation.request.instruments !== 'many') {
    return instruments.map((instrument, index) => ({ index, instruments: [instrument] }));
  }
  const groups = new Map<string, { index: number; instruments: string[] }>();
  for (const [index, instrument] of instruments.entries()) {
    const known = requests.map(({ covered }) => (areCovered(covered, index, index + 1) ? '1' : '0')).join('');
    const group = groups.get(known);
    if (group === undefined) groups.set(known, { index, instruments: [instrument] });
    else group.instruments.push(instrument);
  }
  return [...groups.values()];
}

interface PlannedRequest {
  readonly request: InstrumentRequest;
  readonly covered: Covered | undefined;
  /** True if another target makes it too. */
  readonly isRepeated: boolean;
}

type RequestRange = { -readonly [Name in keyof PlannedRange]: PlannedRange[Name] };

/**
 * The ranges for one instrument. Each request to make has its own; consecutive covered requests of one variant are
 * joined into one skipped range with the parameters that they share, because years have thousands of them. Requests
 * that another target makes too are not joined, so that they can be compared.
 */
function requestRanges(requests: readonly PlannedRequest[], index: number): RequestRange[] {
  const ranges: RequestRange[] = [];
  const open = new Map<string, RequestRange>();
  for (const { request, covered, isRepeated } of requests) {
    const { variant, from, to, params } = request;
    const isKnown = areCovered(covered, index, index + 1);
    const last = isKnown && !isRepeated ? open.get(variant) : undefined;
    if (last !== undefined) {
      last.to = to;
      last.params = sharedParams(last.params, params);
      continue;
    }
    const range: RequestRange = { variant, from, to, params, ...(isKnown ? KNOWN : REQUESTED) };
    ranges.push(range);
    if (isKnown && !isRepeated) open.set(variant, range);
    else open.delete(variant);
  }
  return ranges;
}

const sameParams = (some: InstrumentRequest['params'], others: InstrumentRequest['params']) =>
  JSON.stringify(some) === JSON.stringify(others);

function sharedParams(
  some: InstrumentRequest['params'],
  others: InstrumentRequest['params'],
): InstrumentRequest['params'] {
  if (some === others) return some;
  return Object.fromEntries(Object.entries(some).filter(([param, value]) => others[param] === value));
}

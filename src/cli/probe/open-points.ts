import type { Config } from '../../core/config.ts';
import type { ErrorKind } from '../../core/errors.ts';
import { readResponse } from '../../extract/index.ts';
import { plainName } from '../../operations/fields.ts';
import type { Operation } from '../../operations/operation.ts';
import type { OpenPointName } from '../../sandbox/index.ts';
import { DECLARED_JSON } from '../../sandbox/response/source-response.ts';
import type { MadeCall, SentRecord } from './make-calls.ts';
import { bodyText, dayIn, fieldsOf, keyIn, significantDigits, textIn, textOf } from './sent-values.ts';
import {
  contradicts,
  ofRecords,
  type Responses,
  type SettingChange,
  settled,
  silence,
  undecided,
  type Verdict,
} from './verdict.ts';

const quoted = (names: readonly string[]) =>
  names
    .slice(0, 3)
    .map((name) => `"${name}"`)
    .join(', ');

const isJson = ({ call, response }: MadeCall) => call.variation.format === 'Json' && response !== null;

/** The calls that were served in JSON. */
const served = ({ all }: Responses) => all.filter((made) => isJson(made) && made.problem === null);

const distinct = <Value>(values: readonly Value[]) => [...new Set(values)];

/** Kinds of failures that say nothing about the request. */
const NOT_ABOUT_THE_REQUEST: readonly ErrorKind[] = [
  'credential',
  'monthly_quota',
  'hourly_quota',
  'not_ready',
  'timeout',
  'network',
  'wrong_address',
];

/** What is stated about the number of records, and how many there are, of a response in JSON. */
function countOf(made: MadeCall): { readonly stated: number; readonly held: number } | null {
  try {
    const json: unknown = JSON.parse(bodyText(made));
    if (typeof json !== 'object' || json === null || Array.isArray(json)) return null;
    const count = Object.entries(json).find(([key]) => /^(@odata\.)?count$/i.test(key))?.[1];
    return count === undefined ? null : { stated: Number(count), held: made.records.length };
  } catch {
    return null;
  }
}

/** The table whose rows the response fills; null if none. */
const tableOf = ({ extracted }: Pick<MadeCall, 'extracted'>) => extracted?.batches[0]?.table.name ?? null;

/** The table of the documented sample of an operation. */
function tableOfSample(operation: Operation, config: Config): string | null {
  const { sample } = operation;
  const body = Buffer.from(JSON.stringify(sample.response));
  const requested = {
    ...sample.requested,
    params: { ...sample.requested.params, trialDay: sample.requested.from },
    calledOn: sample.requested.to,
  };
  const raw = { body, bytes: body.length, contentType: null };
  const settings = { accessKey: '', timeZone: config.EOD_TIMEZONE, count: 'ignore' } as const;
  return tableOf({ extracted: readResponse(operation, requested, raw, settings) });
}

/** Pairs of values of the same field in JSON and in CSV, of the same request. */
function pairsWithCsv(responses: Responses, json: string, csv: string) {
  const others = responses.records(csv);
  return responses.records(json).flatMap((one, at) => {
    const other = others[at] ?? {};
    return Object.keys(one).flatMap((key) => {
      const same = keyIn(other, key);
      return same === undefined ? [] : [{ key, json: textOf(one[key]), csv: textOf(other[same]) }];
    });
  });
}

/** More digits than a double has. */
const LONG = 15;

/** For a setting that only matters with one of its values. */
const ifSet = <Name extends SettingChange['name']>(
  config: Config,
  name: Name,
  has: (value: string | undefined) => boolean,
  value: string,
): SettingChange | undefined => (has(config[name] as string | undefined) ? { name, value } : undefined);

/** Says of each open point which reading the responses show. */
export const SEEN: Readonly<Record<OpenPointName, (responses: Responses) => Verdict>> = {
  casing(responses) {
    const keys = distinct(
      served(responses).flatMap(({ records }) => records.flatMap((one) => Object.keys(one))),
    );
    if (keys.length === 0) return undecided('no response in JSON has records');
    const isPascal = (key: string) => /^[A-Z]/.test(key);
    const areAllUpper = keys.every((key) => key === key.toUpperCase());
    const others = keys.filter((key) => !isPascal(key));
    return others.length === 0 && !areAllUpper
      ? settled(`keys begin with capitals: ${quoted(keys)}`)
      : contradicts(`keys such as ${quoted(others.length > 0 ? others : keys)}`);
  },
  envelope(responses) {
    const shown = served(responses).filter(({ records }) => records.length > 0);
    if (shown.length === 0) return undecided('no response in JSON has records');
    const counts = shown.flatMap((made) => {
      const count = countOf(made);
      return count === null ? [] : [{ ...count, name: made.call.operation.name }];
    });
    const wrong = counts.filter(({ stated, held }) => stated !== held);
    const [first] = wrong;
    if (counts.length === 0) return settled(`none of ${shown.length} responses states a count`);
    if (first === undefined) return settled(`in ${counts.length} responses it is the number of records`);
    const text = `${first.name} says ${first.stated} and has ${first.held} ${first.held === 1 ? 'record' : 'records'}`;
    // One response that has fewer may have been cut.
    if (wrong.length < counts.length)
      return undecided(`${text}; in ${counts.length - wrong.length} responses it is the number of records`);
    return contradicts(
      text,
      ifSet(responses.config, 'EOD_COUNT', (value) => value !== 'ignore', 'ignore'),
    );
  },
  shapes(responses) {
    const seen = served(responses).flatMap((made) => {
      const { operation } = made.call;
      const table = tableOf(made);
      if (operation.shapes.length < 2 || table === null) return [];
      return [
        {
          name: operation.name,
          table,
          isSample: table === tableOfSample(operation, responses.config),
        },
      ];
    });
    if (seen.length === 0) return undecided('no operation with two forms was served with records');
    const others = seen.filter(({ isSample }) => !isSample);
    const names = (list: typeof seen) => distinct(list.map(({ name }) => name)).join(', ');
    return others.length === 0
      ? settled(`${names(seen)} have the form of the sample`)
      : contradicts(`${names(others)} have the declared form (market.${others[0]?.table})`);
  },
  contentType(responses) {
    const seen = served(responses).filter(({ response }) => response?.contentType !== null);
    const isDeclared = ({ call }: MadeCall) => DECLARED_JSON.includes(call.operation.name);
    const textual = seen.filter((made) => !isDeclared(made));
    if (textual.length === 0) return undecided('no response in JSON has a content type that shows it');
    const types = distinct(textual.map(({ response }) => (response?.contentType ?? '').replace(/;.*/, '')));
    const text = `JSON comes as ${types.join(', ')}`;
    return types.includes('text/plain') ? settled(text) : contradicts(text);
  },
  classificationByChange(responses) {
    const plain = responses.records('classification');
    const dated = responses.of('classification of a day');
    const [first] = plain;
    if (first === undefined) return undecided(silence(responses, 'classification'));
    if (dated === undefined || dated.problem !== null)
      return undecided(silence(responses, 'classification of a day'));
    const since = dayIn(first, responses.config.EOD_TIMEZONE, 'allotedFrom');
    const { from, to } = dated.call.requested;
    if (since !== null && from <= since && since <= to)
      return undecided('the company was classified on the day that was requested');
    return dated.records.length > 0
      ? settled(`a company classified on ${since} is also sent for ${from}`)
      : contradicts(`a company classified on ${since} is not sent for ${from}: only changes are`);
  },
  withdrawnRatios(responses) {
    const [own, snapshot] = ['daily ratios', 'ratio snapshot'].map((name) => responses.of(name));
    const made = [own, snapshot].filter((one) => one !== undefined);
    if (made.length === 0) return undecided('neither is enabled, or no call was made for them');
    const isServed = made.filter(({ problem }) => problem === null);
    if (isServed.length > 0)
      return settled(`${isServed.map(({ call }) => call.operation.name).join(' and ')} responded`);
    const isRefused = made.every(
      ({ problem }) =>
        problem !== null &&
        (['operation_blocked', 'operation_replaced'].includes(problem.kind) || problem.status === 404),
    );
    const ratios = responses.of('ratios');
    return isRefused && ratios?.problem === null
      ? contradicts('both are refused, and GetFinancialRatios responds')
      : undecided(`they were not served (${made[0]?.problem?.kind}), nor is GetFinancialRatios known to be`);
  },
  actionsByAnnouncement: (responses) =>
    ofRecords(responses, 'actions', (records, { call }) => {
      const zone = responses.config.EOD_TIMEZONE;
      const { trialDay } = responses;
      const [from, to] = trialDay === null ? [call.requested.from, call.requested.to] : [trialDay, trialDay];
      const outside = (name: string) =>
        records.filter((record) => {
          const day = dayIn(record, zone, name);
          return day !== null && (day < from || day > to);
        }).length;
      const [exDates, announcements] = [outside('provXdate'), outside('announcementDate')];
      const text = `of ${records.length} actions for ${from} to ${to}, ${exDates} have an ex-date and ${announcements} an announcement on other days`;
      if (exDates === 0 && announcements > 0) return settled(text);
      return exDates > 0 && announcements === 0 ? contradicts(text) : undecided(text);
    }),
  codedRatios: (responses) =>
    ofRecords(responses, 'actions', (records) => {
      const ratios = records.map((record) => textIn(record, 'ratioAmount'));
      const coded = ratios.filter((text) => /^\d{8}$/.test(text));
      const plain = ratios.filter((text) => /^\d+(\.\d+)?\s*:\s*\d+/.test(text));
      if (coded.length > 0) return contradicts(`codes such as ${quoted(distinct(coded))}`);
      return plain.length > 0
        ? settled(`ratios such as ${quoted(distinct(plain))}`)
        : undecided(`none of ${records.length} actions has a ratio`);
    }),
  actionIdZero: (responses) =>
    ofRecords(responses, 'actions', (records) => {
      const ids = records.map((record) => textIn(record, 'actionId').replace(/\.0+$/, ''));
      const own = ids.filter((id) => !/^0*$/.test(id));
      const key =
        ['scripId', 'symbol'].flatMap((name) => keyIn(records[0] as SentRecord, name) ?? [])[0] ??
        'no symbol';
      if (own.length === 0) return settled(`all ${ids.length} have the id 0 or none, and ${key}`);
      return contradicts(`${distinct(own).length} ids of ${ids.length} actions, and ${key}`);
    }),
  oldSeriesSuffix: (responses) =>
    ofRecords(responses, 'series changes', (records) => {
      const others = records.filter((record) => !['', 'EQ'].includes(textIn(record, 'prevSeries')));
      const [suffixed] = others.filter((record) =>
        textIn(record, 'scripId').endsWith(`.${textIn(record, 'prevSeries')}`),
      );
      if (others.length === 0) return undecided('no change from another series than EQ was sent');
      return suffixed === undefined
        ? settled(`${others.length} changes from other series than EQ have no suffix`)
        : contradicts(`"${textIn(suffixed, 'scripId')}" of series ${textIn(suffixed, 'prevSeries')}`);
    }),
  srcCodes: (responses) =>
    ofRecords(responses, 'prices', (records, { call }) => {
      const codes = distinct(records.map((record) => textIn(record, 'src')));
      if (codes.every((code) => code === '')) return undecided('it is empty');
      const text = `it is ${quoted(codes)} for ${call.requested.exchange}`;
      return codes.every((code) => code === call.requested.exchange) ? settled(text) : contradicts(text);
    }),
  filledBlanks: (responses) =>
    ofRecords(responses, 'prices', (records, { call }) => {
      const meaningless = fieldsOf(call.operation).filter(({ meaningless }) => meaningless === true);
      const filled = records.flatMap((record) =>
        meaningless.flatMap(({ source, kind }) => {
          const text = textIn(record, source);
          const isNone = text === '' || (kind === 'date' && /^0?1-0?1-0001\b/.test(text));
          return isNone ? [] : [`${source} ${text}`];
        }),
      );
      return filled.length === 0
        ? settled(`all ${meaningless.length} are empty`)
        : contradicts(`such as ${quoted(distinct(filled))}`);
    }),
  missingKeys: (responses) =>
    ofRecords(responses, 'prices', (records, { call }) => {
      const fields = fieldsOf(call.operation).map(({ source }) => source);
      const blank = fields.filter((name) =>
        records.some((record) => keyIn(record, name) !== undefined && textIn(record, name) === ''),
      );
      const missing = fields.filter((name) => records.some((record) => keyIn(record, name) === undefined));
      if (blank.length > 0) return settled(`${quoted(blank)} have their keys and no value`);
      return missing.length > 0
        ? contradicts(`${quoted(missing)} have no key`)
        : undecided('every declared field has a value');
    }),
  spacedKeys(responses) {
    const names = served(responses)
      .filter(({ call }) => call.operation.shapes.some(({ table }) => table.name === 'financial_ratios'))
      .flatMap(({ records }) => records.flatMap((record) => [...Object.keys(record), textIn(record, 'key')]))
      .filter((name) => plainName(name) === 'stockprice');
    const [name] = names;
    if (name === undefined) return undecided('no response has a stock price of ratios');
    return /\s/.test(name) ? contradicts(`"${name}"`) : settled(`"${name}"`);
  },
  epochMilliseconds: (responses) =>
    ofRecords(responses, 'prices in Epoch', (records, { call }) => {
      const of = (kind: string) =>
        fieldsOf(call.operation)
          .filter((field) => field.kind === kind)
          .flatMap(({ source }) => records.map((record) => textIn(record, source)))
          .filter((text) => /^-?\d+(\.0+)?$/.test(text));
      const [time] = of('datetime').filter((text) => Number(text) !== 0);
      if (time === undefined) return undecided('no time was sent as a number');
      const none = of('date').some((text) => Number(text) === 0) ? '0 for no date' : 'nothing for no date';
      const isMilliseconds = Number(time) > 100_000_000_000;
      if (!isMilliseconds) return settled(`times are in seconds (${time}), ${none}`);
      const setting = ifSet(responses.config, 'EOD_DATE_FORMAT', (value) => value === 'Epoch', 'String');
      return contradicts(`times are in milliseconds (${time}), ${none}`, setting);
    }),
  shortNumbers(responses) {
    const pairs = [
      ...pairsWithCsv(responses, 'ratios', 'ratios in CSV'),
      ...pairsWithCsv(responses, 'prices', 'prices in CSV'),
    ].map(({ key, json, csv }) => ({
      key,
      json,
      csv,
      digits: significantDigits(json)?.length ?? 0,
      more: significantDigits(csv)?.length ?? 0,
    }));
    if (pairs.length === 0) return undecided('no request was served in JSON and in CSV');
    const long = pairs.filter(({ digits, more }) => Math.max(digits, more) > LONG);
    const [differing] = long.filter(({ digits, more }) => digits !== more);
    if (differing !== undefined) {
      const { key, json, csv, digits, more } = differing;
      const isBetter = digits < more && SEEN.csvUnquoted(responses).state === 'settled';
      const setting = isBetter
        ? ifSet(responses.config, 'EOD_FORMAT', (value) => value === 'Json', 'Csv')
        : undefined;
      return contradicts(`${key} is ${json} in JSON and ${csv} in CSV`, setting);
    }
    return long.length > 0
      ? settled(`${long[0]?.key} has ${long[0]?.digits} digits in JSON and in CSV`)
      : undecided(`no number of ${pairs.length} values has more than ${LONG} digits`);
  },
  csvUnquoted(responses) {
    const [json, csv] = [responses.records('prices')[0], responses.of('prices in CSV')];
    const header = csv === undefined || csv.problem !== null ? '' : (bodyText(csv).split(/\r?\n/)[0] ?? '');
    if (json === undefined || header === '') return undecided('no request was served in JSON and in CSV');
    const columns = header.split(',').map((name) => plainName(name.replaceAll('"', '').trim()));
    const keys = Object.keys(json).map(plainName);
    const [inCsv, inJson] = [
      columns.filter((one) => keys.includes(one)),
      keys.filter((one) => columns.includes(one)),
    ];
    if (inCsv.length === 0) return undecided('CSV has no header with names that JSON has');
    if (inCsv.join() === inJson.join())
      return settled(`its ${inCsv.length} columns are in the order of the keys in JSON`);
    const setting = ifSet(
      responses.config,
      'EOD_FORMAT',
      (value) => value?.startsWith('Csv') === true,
      'Json',
    );
    return contradicts(
      `its columns begin with ${quoted(inCsv)}, the keys in JSON with ${quoted(inJson)}`,
      setting,
    );
  },
  xmlAttributes(responses) {
    const made = responses.of('prices in XML');
    const text = made === undefined || made.problem !== null ? '' : bodyText(made);
    const element = /<(?:\w+:)?symbol>[^<]*/i.exec(text)?.[0];
    const attribute = /\ssymbol="[^"]*"/i.exec(text)?.[0].trim();
    if (element !== undefined) return settled(`elements such as ${element}`);
    return attribute === undefined
      ? undecided(made === undefined ? silence(responses, 'prices in XML') : 'no XML with a symbol was sent')
      : contradicts(`attributes such as ${attribute}`);
  },
  anyCase(responses) {
    const [plain, other] = [responses.of('prices'), responses.of('prices spelled otherwise')];
    if (plain === undefined || plain.problem !== null) return undecided(silence(responses, 'prices'));
    if (other === undefined) return undecided(silence(responses, 'prices spelled otherwise'));
    if (other.problem === null) {
      return other.records.length > 0
        ? contradicts('names in capitals are understood too')
        : undecided('with names in capitals, the response has no records');
    }
    const { kind, status = 0, diagnostic } = other.problem;
    if (NOT_ABOUT_THE_REQUEST.includes(kind) || status >= 500)
      return undecided(`the call with names in capitals failed (${kind})`);
    return settled(`names in capitals are refused${diagnostic === undefined ? '' : `: "${diagnostic}"`}`);
  },
  exactTimes(responses) {
    const name = 'prices until noon';
    const made = responses.of(name);
    if (responses.config.EOD_DATE_DIALECT !== 'epoch')
      return undecided('days are requested without hours (EOD_DATE_DIALECT)');
    if (responses.trialDay !== null) return undecided('the address serves one day whatever is requested');
    if (responses.records('prices').length === 0) return undecided(silence(responses, 'prices'));
    if (made === undefined || made.problem !== null) return undecided(silence(responses, name));
    return made.records.length > 0
      ? settled('a day that is requested until noon is served')
      : contradicts('a day that is requested until noon is not served, and until 23:59:59 it is');
  },
  trialDay(responses) {
    const zone = responses.config.EOD_TIMEZONE;
    const [one, other] = ['prices', 'prices before'].map((name) =>
      responses.records(name).map((record) => dayIn(record, zone, 'tradDt')),
    );
    const [day, before] = ['prices', 'prices before'].map((name) => responses.of(name)?.call.requested.to);
    if (responses.trialDay !== null) {
      const setting = ifSet(
        responses.config,
        'EOD_TRIAL_DAY',
        (value) => value !== responses.trialDay,
        responses.trialDay,
      );
      return contradicts(`${responses.trialDay} was sent for ${day} and for ${before}`, setting);
    }
    if (one?.includes(day ?? '') === true && other?.includes(before ?? '') === true)
      return settled(`${day} and ${before} were requested and sent`);
    return undecided('no two days were served');
  },
};

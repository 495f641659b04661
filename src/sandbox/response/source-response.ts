import { type Day, dayStart } from '../../core/days.ts';
import type { Kind, ResponseField } from '../../operations/fields.ts';
import type { Operation, Shape } from '../../operations/operation.ts';
import type { Behaviour, Reading } from '../behaviour.ts';
import { type Market, ZONE } from '../market/market.ts';
import type { Query } from '../request-query.ts';
import { type DataSet, type OperationDataSets, sessionsOf } from './dataset.ts';
import { csvBody, type DateFormat, jsonBody, jsonObjects, xmlAttributes, xmlBody } from './format.ts';
import { complete, inventRecords, responseFields, type SourceRecord, type Value } from './record.ts';
import type { Reply } from './reply.ts';

/** By the specification these two operations respond with application/json, the others with text/plain. */
const DECLARED_JSON = ['GetCircuitBreakers', 'GetSeriesChange'];
const JSON_TYPE = 'application/json; charset=utf-8';
const TEXT_TYPE = 'text/plain; charset=utf-8';

/** Records with their fields, ready to be written. */
interface Sent {
  readonly fields: readonly ResponseField[];
  readonly records: readonly SourceRecord[];
}

/** How another reading changes the records of a table. */
interface Change {
  readonly reading: Reading;
  readonly table: string;
  /** Other names of fields. */
  readonly names?: Readonly<Record<string, string>>;
  /** Other kinds of fields, which say how a value is written. */
  readonly kinds?: Readonly<Record<string, Kind>>;
  /** Other values, by the declared names. */
  values?(record: SourceRecord, position: number): SourceRecord;
}

/** The dates of a corporate action; the published sample has the time of each. */
const ACTION_DATES = [
  'announcementDate',
  'meetingDate',
  'bcRdFrom',
  'bcRdTo',
  'provXdate',
  'ndStartDate',
  'ndEndDate',
  'paymentDate',
];

/** When actions are announced, in seconds after midnight. */
const ANNOUNCED_AT = 16 * 3600 + 36 * 60 + 3;

const CHANGES: readonly Change[] = [
  {
    reading: 'codedRatios',
    table: 'corporate_actions',
    values: ({ ratioAmount }) => ({ ratioAmount: coded(ratioAmount) }),
  },
  {
    reading: 'actionIdZero',
    table: 'corporate_actions',
    names: { symbol: 'ScripId', companyName: 'ScripName' },
    kinds: {
      actionId: 'int8',
      scripFaceValue: 'text',
      ...Object.fromEntries(ACTION_DATES.map((name) => [name, 'datetime'])),
    },
    values: (record) => ({
      actionId: 0,
      scripFaceValue: `${record.scripFaceValue}.0`,
      ...Object.fromEntries(
        ACTION_DATES.map((name) => {
          const day = record[name];
          const seconds = name === 'announcementDate' ? ANNOUNCED_AT : 0;
          return [name, typeof day === 'string' ? dayStart(day, ZONE) + seconds : null];
        }),
      ),
    }),
  },
  {
    reading: 'oldSeriesSuffix',
    table: 'series_changes',
    values: ({ scripId, prevSeries }) => ({
      scripId: prevSeries === 'EQ' ? scripId : `${scripId}.${prevSeries}`,
    }),
  },
  {
    reading: 'srcCodes',
    table: 'bhavcopy_cm',
    values: ({ src }, position) => ({ src: position % 2 === 0 ? `X${src}` : String(src).toLowerCase() }),
  },
  {
    reading: 'filledBlanks',
    table: 'bhavcopy_cm',
    kinds: {
      expiry: 'text',
      finInstrmActlXpryDt: 'numeric',
      strikePrice: 'text',
      underlyingPrice: 'text',
      oi: 'numeric',
      oiChng: 'text',
    },
    values: () => ({
      expiry: '-',
      finInstrmActlXpryDt: 0,
      strikePrice: 'XX',
      underlyingPrice: '-',
      oi: 0.5,
      oiChng: '-',
    }),
  },
  { reading: 'spacedKeys', table: 'financial_ratios', names: { stockPrice: 'Stock Price' } },
];

function inventedDataSets(operation: Operation): OperationDataSets {
  const [shape] = operation.shapes;
  const { table } = shape;
  const symbol = table.fields.find(({ column }) => column === (shape.symbolColumn ?? table.names[0]?.symbol));
  const codes = codesOf(operation, responseFields(table));
  return {
    sample: {
      table: table.name,
      records(market, query) {
        const instruments = query.instruments.length === 0 ? [null] : query.instruments;
        return daysOf(market, query).flatMap((day) =>
          instruments.flatMap((instrument) => {
            const requested = instrument === null ? '' : ` ${instrument} ${JSON.stringify(query.options)}`;
            const identity = `${operation.name} ${query.segment} ${day}${requested}`;
            const named =
              instrument !== null && symbol?.from === 'response' ? { [symbol.source]: instrument } : {};
            return inventRecords(table, identity, day, { ...codes, ...named });
          }),
        );
      },
    },
  };
}

/** Fields with a few values of which each means something: an invented one would be a wrong response, or request. */
const CODES = /year$|type$|period$|^nature|category$|group$|^series$|^band$|^option/i;

/** The values of such fields in the first record of an operation's sample. */
function codesOf({ sample }: Operation, fields: readonly ResponseField[]): SourceRecord {
  const { response } = sample;
  const lists = Object.values(Object(response)).filter(Array.isArray);
  const record: unknown = Array.isArray(response) ? response[0] : (lists[0]?.[0] ?? response);
  const sent = new Map(Object.entries(Object(record)).map(([name, value]) => [name.toLowerCase(), value]));
  return Object.fromEntries(
    fields.flatMap(({ source, kind }) => {
      const value = sent.get(source.toLowerCase());
      const isCode = CODES.test(source) && ['text', 'int2', 'int4'].includes(kind);
      return isCode && (typeof value === 'string' || typeof value === 'number') ? [[source, value]] : [];
    }),
  );
}

/** The days of invented records: the sessions that were requested, or the newest if none were. */
function daysOf(market: Market, query: Query): readonly Day[] {
  const { exchange, day, range } = query;
  if (day !== null) return market.sessions(exchange, day, day);
  const latest = market.latestSession(exchange);
  if (range !== null) return sessionsOf(market, query);
  return latest === null ? [] : [latest];
}

function shapeOf(operation: Operation, dataSet: DataSet): Shape {
  const shape = operation.shapes.find((one) => one.table.name === dataSet.table);
  if (shape === undefined) throw new Error(`${operation.name} has no shape for ${dataSet.table}`);
  return shape;
}

function contentType(operation: Operation, behaviour: Behaviour): string {
  if (behaviour.contentType === 'spec') return DECLARED_JSON.includes(operation.name) ? JSON_TYPE : TEXT_TYPE;
  return behaviour.contentType === 'json' ? JSON_TYPE : TEXT_TYPE;
}

/** Makes the body and headers of the response to a request that passed every check. */
export async function createResponse(
  market: Market,
  query: Query,
  behaviour: Behaviour,
  known: ReadonlyMap<string, OperationDataSets>,
): Promise<Reply> {
  const { operation } = query;
  const { sample, declared } = known.get(operation.name) ?? inventedDataSets(operation);
  const dataSet = behaviour.shapes === 'declared' && declared !== undefined ? declared : sample;
  const { table } = shapeOf(operation, dataSet);
  const declaredFields = responseFields(table);
  const made = await dataSet.records(market, query);
  const keys = declaredFields.filter(({ column }) => table.key.includes(column));
  const completed = made.map((record) => {
    const key = keys.map(({ source }) => record[source]).join(' ');
    return complete(record, declaredFields, `${table.name} ${key}`);
  });
  const written = { fields: declaredFields, records: completed };
  const { fields, records } = contrarily(dataSet, written, behaviour);
  const isEpoch = query.dates === 'Epoch';
  const dates: DateFormat = isEpoch && behaviour.epochMilliseconds ? 'Milliseconds' : query.dates;
  const byteOrderMark = behaviour.bom ? '\ufeff' : '';
  if (query.format === 'Xml') {
    const body = behaviour.xmlAttributes
      ? xmlAttributes(operation.name, records, fields, dates)
      : xmlBody(operation.name.replace(/^Get/, ''), records, fields, dates);
    return { contentType: 'application/xml; charset=utf-8', body: byteOrderMark + body };
  }
  if (query.format !== 'Json') {
    const repeatAudit = operation.name === 'GetTotalTradeHighlights';
    const style = { dates, repeatAudit, unquoted: behaviour.csvUnquoted };
    const body = byteOrderMark + csvBody(records, fields, style);
    if (query.format === 'Csv') return { contentType: TEXT_TYPE, body };
    const headers = { 'content-disposition': `attachment; filename="${operation.name}.csv"` };
    return { contentType: 'text/csv; charset=utf-8', body, headers };
  }
  const style = { dates, shortNumbers: behaviour.shortNumbers };
  const objects = jsonObjects(records, fields, behaviour.casing, style);
  const envelope = behaviour.envelope ?? (dataSet.bare === true ? 'bare-object' : 'value');
  return {
    contentType: contentType(operation, behaviour),
    body: byteOrderMark + jsonBody(objects, envelope, behaviour.casing),
  };
}

/** A ratio as the published sample codes it: 5:1 as 00050001. */
const coded = (ratio: Value): Value => {
  const sides = typeof ratio === 'string' && ratio.includes(':') ? ratio.split(':') : null;
  return sides === null ? ratio : `${sides.map((side) => side.padStart(4, '0')).join('')} `;
};

/** Rewrites a response as the other readings of the source would have it. */
function contrarily(
  { table, published = false }: Pick<DataSet, 'table' | 'published'>,
  sent: Sent,
  behaviour: Behaviour,
): Sent {
  const isSet = (reading: Reading) =>
    reading === 'actionIdZero' ? behaviour[reading] !== published : behaviour[reading];

  const changes = CHANGES.filter((one) => one.table === table && isSet(one.reading));
  const changed = changes.reduce(apply, sent);
  return behaviour.missingKeys ? withoutBlanks(changed) : changed;
}

function apply({ fields, records }: Sent, { names = {}, kinds = {}, values }: Change): Sent {
  const renamed = Object.entries(names);
  return {
    fields: fields.map((field) => ({
      ...field,
      source: names[field.source] ?? field.source,
      kind: kinds[field.source] ?? field.kind,
    })),
    records: records.map((record, position) => ({
      ...record,
      ...values?.(record, position),
      ...Object.fromEntries(renamed.map(([declared, name]) => [name, record[declared]])),
    })),
  };
}

const isBlank = (value: Value) => value === null || value === '';

function withoutBlanks({ fields, records }: Sent): Sent {
  const filled = records.map((record) =>
    Object.fromEntries(Object.entries(record).filter(([, value]) => !isBlank(value))),
  );
  return { fields, records: filled };
}

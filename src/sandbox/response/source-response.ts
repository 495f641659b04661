import type { Day } from '../../core/days.ts';
import type { Operation } from '../../declaration/operation.ts';
import type { Behaviour } from '../behaviour.ts';
import type { CheckedRequest } from '../checked-request.ts';
import type { Market } from '../market/market.ts';
import { type DataSet, listTradingDays } from './dataset.ts';
import { csvBody, jsonBody, xmlBody } from './format.ts';
import { complete, responseFields, type SourceRecord } from './record.ts';
import { type Reply, TEXT } from './reply.ts';

/** An operation that is not simulated: the records of its sample, for each trading day that was requested. */
function sampleDataSet({ shapes: [{ table }], sample }: Operation): DataSet {
  const { Value: records = [] } = sample.response as { Value?: SourceRecord[] };
  const fields = responseFields(table);
  const samples = records.map((record) => {
    const values = new Map(Object.entries(record).map(([name, value]) => [name.toLowerCase(), value]));
    // The dates are those of the trading day.
    const kept = fields.filter(
      ({ kind, source }) => kind !== 'date' && kind !== 'datetime' && values.has(source.toLowerCase()),
    );
    return Object.fromEntries(kept.map(({ source }) => [source, values.get(source.toLowerCase())]));
  });
  return {
    table: table.name,
    records: (market, request) =>
      listDays(market, request).flatMap((day) => samples.map((record) => complete(record, fields, day, day))),
  };
}

/** The days of its records: the trading days that were requested, or the newest if none were. */
function listDays(market: Market, request: CheckedRequest): readonly Day[] {
  const { exchange, day, range } = request;
  if (day !== null) return market.tradingDays(exchange, day, day);
  if (range !== null) return listTradingDays(market, request);
  const latest = market.latestTradingDay(exchange);
  return latest === null ? [] : [latest];
}

/** Makes the body and headers of the response to a request that passed every check. */
export function createResponse(
  market: Market,
  request: CheckedRequest,
  { casing }: Pick<Behaviour, 'casing'>,
  dataSet: DataSet = sampleDataSet(request.operation),
): Reply {
  const { operation, format } = request;
  const table = operation.shapes.find((shape) => shape.table.name === dataSet.table)?.table;
  if (table === undefined) throw new Error(`${operation.name} has no shape for ${dataSet.table}`);
  const declared = responseFields(table);
  const keys = declared.filter(({ column }) => table.key.includes(column));
  const records = dataSet.records(market, request).map((record) => {
    const key = keys.map(({ source }) => record[source]).join(' ');
    return complete(record, declared, `${table.name} ${key}`);
  });
  const fields = declared.map(({ source, kind }) => {
    const written = dataSet.written?.[source];
    return { source, name: written?.source ?? source, kind: written?.kind ?? kind };
  });
  if (format === 'Xml') {
    const body = xmlBody(operation.name.replace(/^Get/, ''), records, fields);
    return { contentType: 'application/xml; charset=utf-8', body };
  }
  if (format === 'Json') {
    const bare = dataSet.bare === true;
    return { contentType: TEXT, body: jsonBody(records, fields, { casing, bare }) };
  }
  const body = csvBody(records, fields);
  if (format === 'Csv') return { contentType: TEXT, body };
  const headers = { 'content-disposition': `attachment; filename="${operation.name}.csv"` };
  return { contentType: 'text/csv; charset=utf-8', body, headers };
}

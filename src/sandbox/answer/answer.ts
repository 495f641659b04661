import type { Operation, Shape } from '../../operations/operation.ts';
import type { Behaviour } from '../behaviour.ts';
import type { DataSet, OperationDataSets } from '../datasets/dataset.ts';
import { sessionsOf } from '../datasets/dataset.ts';
import type { Reply } from '../http/reply.ts';
import type { Market } from '../market/market.ts';
import type { Query } from '../query.ts';
import { csvBody, jsonBody, jsonObjects, xmlBody } from './format.ts';
import { answerFields, complete, inventRecords } from './record.ts';

/** By the specification these two operations answer with application/json, the others with text/plain. */
const DECLARED_JSON = ['GetCircuitBreakers', 'GetSeriesChange'];
const JSON_TYPE = 'application/json; charset=utf-8';
const TEXT_TYPE = 'text/plain; charset=utf-8';

function inventedDataSets(operation: Operation): OperationDataSets {
  const [{ table }] = operation.shapes;
  return {
    sample: {
      table: table.name,
      records(market, query) {
        const days =
          query.day === null
            ? sessionsOf(market, query)
            : market.sessions(query.exchange, query.day, query.day);
        const asked =
          query.range === null && query.day === null ? [market.latestSession(query.exchange)] : days;
        return asked.flatMap((day) =>
          day === null ? [] : inventRecords(table, `${operation.name} ${query.exchange} ${day}`, day),
        );
      },
    },
  };
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

/** Makes the body and headers of the answer to a request that passed every check. */
export async function answer(
  market: Market,
  query: Query,
  behaviour: Behaviour,
  known: ReadonlyMap<string, OperationDataSets>,
): Promise<Reply> {
  const { operation } = query;
  const { sample, declared } = known.get(operation.name) ?? inventedDataSets(operation);
  const dataSet = behaviour.shapes === 'declared' && declared !== undefined ? declared : sample;
  const { table } = shapeOf(operation, dataSet);
  const fields = answerFields(table);
  const made = await dataSet.records(market, query);
  const keys = fields.filter(({ column }) => table.key.includes(column));
  const records = made.map((record) => {
    const key = keys.map(({ source }) => record[source]).join(' ');
    return complete(record, fields, `${table.name} ${key}`);
  });
  const byteOrderMark = behaviour.bom ? '\ufeff' : '';
  if (query.format === 'Xml') {
    const body = byteOrderMark + xmlBody(operation.name.replace(/^Get/, ''), records, fields, query.dates);
    return { contentType: 'application/xml; charset=utf-8', body };
  }
  if (query.format !== 'Json') {
    const body =
      byteOrderMark + csvBody(records, fields, query.dates, operation.name === 'GetTotalTradeHighlights');
    if (query.format === 'Csv') return { contentType: TEXT_TYPE, body };
    const headers = { 'content-disposition': `attachment; filename="${operation.name}.csv"` };
    return { contentType: 'text/csv; charset=utf-8', body, headers };
  }
  const objects = jsonObjects(records, fields, behaviour.casing, query.dates);
  const envelope = behaviour.envelope ?? (dataSet.bare === true ? 'bare-object' : 'value');
  return {
    contentType: contentType(operation, behaviour),
    body: byteOrderMark + jsonBody(objects, envelope, behaviour.casing),
  };
}

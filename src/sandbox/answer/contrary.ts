import { dayStart } from '../../core/days.ts';
import type { AnswerField, Kind } from '../../operations/fields.ts';
import type { Behaviour, Reading } from '../behaviour.ts';
import { ZONE } from '../market/market.ts';
import type { DataSet } from './dataset.ts';
import type { SourceRecord, Value } from './record.ts';

/** Records with their fields, ready to be written. */
interface Answered {
  readonly fields: readonly AnswerField[];
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
  values?(record: SourceRecord, place: number): SourceRecord;
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

/** A ratio as the published sample codes it: 5:1 as 00050001. */
const coded = (ratio: Value): Value => {
  const sides = typeof ratio === 'string' && ratio.includes(':') ? ratio.split(':') : null;
  return sides === null ? ratio : `${sides.map((side) => side.padStart(4, '0')).join('')} `;
};

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
    values: ({ src }, place) => ({ src: place % 2 === 0 ? `X${src}` : String(src).toLowerCase() }),
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

/** Rewrites an answer as the other readings of the source would have it. */
export function contrarily(
  { table, published = false }: Pick<DataSet, 'table' | 'published'>,
  answered: Answered,
  behaviour: Behaviour,
): Answered {
  const isSet = (reading: Reading) =>
    reading === 'actionIdZero' ? behaviour[reading] !== published : behaviour[reading];

  const changes = CHANGES.filter((one) => one.table === table && isSet(one.reading));
  const changed = changes.reduce(apply, answered);
  return behaviour.missingKeys ? withoutBlanks(changed) : changed;
}

function apply({ fields, records }: Answered, { names = {}, kinds = {}, values }: Change): Answered {
  const renamed = Object.entries(names);
  return {
    fields: fields.map((field) => ({
      ...field,
      source: names[field.source] ?? field.source,
      kind: kinds[field.source] ?? field.kind,
    })),
    records: records.map((record, place) => ({
      ...record,
      ...values?.(record, place),
      ...Object.fromEntries(renamed.map(([declared, name]) => [name, record[declared]])),
    })),
  };
}

const isBlank = (value: Value) => value === null || value === '';

function withoutBlanks({ fields, records }: Answered): Answered {
  const filled = records.map((record) =>
    Object.fromEntries(Object.entries(record).filter(([, value]) => !isBlank(value))),
  );
  return { fields, records: filled };
}

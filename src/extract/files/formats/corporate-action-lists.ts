import { listedEventProblem } from '../../corporate-actions/listed-events.ts';
import { defineFormat } from '../file-format.ts';

const list = { dataSet: 'CorporateActionLists', byTradingDay: false } as const;

export default [
  defineFormat({
    ...list,
    name: 'nse-actions',
    files: ['CF-CA-equities-DD-MM-YYYY-to-DD-MM-YYYY.csv'],
    exchange: 'NSE',
    marks: ['SYMBOL', 'PURPOSE', 'EX-DATE'],
    columns: {
      SYMBOL: 'symbol',
      SERIES: 'series',
      PURPOSE: 'purpose',
      'EX-DATE': 'exDate',
      'RECORD DATE': 'recordDate',
      // Each second name was used until 2020.
      'COMPANY NAME': 'companyName',
      COMPANY: 'companyName',
      'FACE VALUE': 'faceValue',
      'FACE VALUE(RS.)': 'faceValue',
      'BOOK CLOSURE START DATE': 'bookClosureFrom',
      'BC START DATE': 'bookClosureFrom',
      'BOOK CLOSURE END DATE': 'bookClosureTo',
      'BC END DATE': 'bookClosureTo',
    },
  }),
  // What NSE's page receives.
  defineFormat({
    ...list,
    name: 'nse-actions',
    files: ['corporates-corporateActions.json'],
    exchange: 'NSE',
    marks: ['symbol', 'subject', 'exDate', 'bcStartDate'],
    columns: {
      symbol: 'symbol',
      series: 'series',
      subject: 'purpose',
      exDate: 'exDate',
      recDate: 'recordDate',
      comp: 'companyName',
      faceVal: 'faceValue',
      bcStartDate: 'bookClosureFrom',
      bcEndDate: 'bookClosureTo',
    },
  }),
  // In NSE's daily archive.
  defineFormat({
    ...list,
    name: 'nse-actions-daily',
    files: ['BcDDMMYY.csv'],
    exchange: 'NSE',
    mayBeEmpty: true,
    marks: ['SYMBOL', 'PURPOSE', 'EX_DT'],
    columns: {
      SYMBOL: 'symbol',
      SERIES: 'series',
      PURPOSE: 'purpose',
      SECURITY: 'companyName',
      EX_DT: 'exDate',
      RECORD_DT: 'recordDate',
      BC_STRT_DT: 'bookClosureFrom',
      BC_END_DT: 'bookClosureTo',
    },
    // Each line says of which kind its list is. Lists of other kinds do not know it, so that what is stored is kept.
    constants: { isDaily: 'true' },
    passedOverWithout: {
      field: 'exDate',
      because: 'have no ex-date: redemptions and calls, mostly of bonds and funds',
    },
  }),
  defineFormat({
    ...list,
    name: 'bse-actions',
    files: ['Corporate_Actions.csv'],
    exchange: 'BSE',
    marks: ['SECURITY CODE', 'EX DATE', 'PURPOSE'],
    needs: ['SECURITY NAME'],
    columns: {
      'SECURITY CODE': 'scripCode',
      'SECURITY NAME': 'symbol',
      'COMPANY NAME': 'companyName',
      PURPOSE: 'purpose',
      'EX DATE': 'exDate',
      'RECORD DATE': 'recordDate',
      'BC START DATE': 'bookClosureFrom',
      'BC END DATE': 'bookClosureTo',
      'ACTUAL PAYMENT DATE': 'paymentDate',
    },
  }),
  // A user's own list, for events that no other list has.
  defineFormat({
    ...list,
    name: 'actions',
    files: ['events.csv'],
    exchange: null,
    exchangeColumn: 'EXCHANGE',
    marks: ['EXCHANGE', 'SYMBOL', 'EX_DATE', 'KIND'],
    needs: ['RATIO'],
    columns: { EX_DATE: 'exDate', RATIO: 'ratio', NOTE: 'purpose', SYMBOL: 'symbol', KIND: 'kind' },
    adapt(record) {
      record.symbol = record.symbol?.toUpperCase() ?? null;
      record.kind = record.kind?.toLowerCase() ?? null;
      // The note is optional.
      record.purpose ??= [record.kind, record.ratio].filter(Boolean).join(' ');
    },
    check: ({ kind, ratio }) => listedEventProblem(kind ?? null, ratio ?? null),
  }),
];

import { date, int8, text } from '../../declaration/fields.ts';
import { defineFileSet } from '../../declaration/operation.ts';
import { defineTable } from '../../declaration/table.ts';

const CONTRACTS = { unit: 'contracts' } as const;

const ofFutures = <const Column extends string>(underlying: 'Index' | 'Stock', column: Column) => [
  int8(`Future${underlying}Long`, `${column}_long`, 'Contracts held long.', CONTRACTS),
  int8(`Future${underlying}Short`, `${column}_short`, 'Contracts held short.', CONTRACTS),
];

const ofOptions = <const Column extends string>(underlying: 'Index' | 'Stock', column: Column) => [
  int8(`Option${underlying}CallLong`, `${column}_call_long`, 'Calls held long.', CONTRACTS),
  int8(`Option${underlying}PutLong`, `${column}_put_long`, 'Puts held long.', CONTRACTS),
  int8(`Option${underlying}CallShort`, `${column}_call_short`, 'Calls held short.', CONTRACTS),
  int8(`Option${underlying}PutShort`, `${column}_put_short`, 'Puts held short.', CONTRACTS),
];

const table = defineTable({
  name: 'participant_positions',
  comment:
    'Open derivative positions of NSE by class of participant on each trading day, with a row for the total.',
  key: ['exchange', 'trade_date', 'client_type'],
  fields: [
    date('Date', 'trade_date', 'Trading day.', { required: true }),
    text('ClientType', 'client_type', 'Class of participant: Client, DII, FII, Pro, or TOTAL.', {
      required: true,
    }),
    ...ofFutures('Index', 'future_index'),
    ...ofFutures('Stock', 'future_stock'),
    ...ofOptions('Index', 'option_index'),
    ...ofOptions('Stock', 'option_stock'),
    int8('TotalLongContracts', 'total_long', 'All contracts held long.', CONTRACTS),
    int8('TotalShortContracts', 'total_short', 'All contracts held short.', CONTRACTS),
  ],
});

export default defineFileSet({
  name: 'GetFIIDII',
  title: 'Positions of participants',
  group: 'trading',
  summary: 'Derivative positions by class of participant',
  shapes: [{ table, has: ['Date', 'ClientType'], dated: true, fullSet: 'days' }],
  days: 'sessions',
  emptyIsNormal: false,
});

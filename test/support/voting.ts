/** An operation that a user declares, with the lines that a test changes. */
export function declaration({
  fields = '',
  key = '',
  kind = 'int8',
  name = 'GetVoting',
  table = 'voting_results',
} = {}) {
  return `// @ts-check
import { date, defineOperation, defineTable, int8, numeric, text } from 'eod-pipeline/operations';

const table = defineTable({
  name: '${table}',
  comment: 'Results of votes.',
  key: ['exchange', 'meeting_date', 'symbol'${key}],
  fields: [
    date('meetingDate', 'meeting_date', 'Day of the meeting.', { required: true }),
    text('symbol', 'symbol', 'Ticker symbol.', { required: true }),
    ${kind}('votesFor', 'votes_for', 'Votes for it.', { unit: 'votes', required: true }),
    ${fields}
  ],
});

export default defineOperation({
  name: '${name}',
  summary: 'Results of votes',
  exchanges: ['BSE'],
  request: { dates: 'range', instruments: 'none', dTFormat: true, options: [] },
  shapes: [{ table, has: ['symbol', 'meetingDate'], dated: true, fullSet: 'days' }],
  windows: { per: 'range', days: 30, everyDay: false },
  publishedAt: '21:15',
  schedule: { at: '21:45', on: 'daily', hasLookback: true },
  emptyIsNormal: true,
  sample: {
    requested: { exchange: 'BSE', from: '2025-02-27', to: '2025-02-27', instruments: [], params: {} },
    response: { Value: [{ MeetingDate: '02-27-2025', Symbol: 'TCS', VotesFor: 12345 }] },
  },
});
`;
}

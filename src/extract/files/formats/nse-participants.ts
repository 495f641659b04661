import { defineFormat } from '../file-format.ts';

const kinds = ['Call Long', 'Put Long', 'Call Short', 'Put Short'];

/** NSE's open interest of participants: what is held long and short. */
export default defineFormat({
  name: 'nse-participants',
  files: ['fao_participant_oi_DDMMYYYY.csv'],
  dataSet: 'GetFIIDII',
  exchange: 'NSE',
  title: /participant wise open interest.* as on ([a-z]{3,9}\.? \d{1,2}, ?\d{4})/i,
  day: { field: 'Date' },
  marks: ['Client Type', 'Future Index Long', 'Total Long Contracts'],
  columns: {
    'Client Type': 'ClientType',
    'Total Long Contracts': 'TotalLongContracts',
    'Total Short Contracts': 'TotalShortContracts',
    ...Object.fromEntries(
      ['Index', 'Stock'].flatMap((of) => [
        ...['Long', 'Short'].map((side) => [`Future ${of} ${side}`, `Future${of}${side}`]),
        ...kinds.map((kind) => [`Option ${of} ${kind}`, `Option${of}${kind.replace(' ', '')}`]),
      ]),
    ),
  },
});

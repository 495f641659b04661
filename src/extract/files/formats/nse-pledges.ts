import { defineFormat } from '../file-format.ts';

/** What columns of the CSV begin with. */
const ENCUMBERED = 'PROMOTER SHARES ENCUMBERED AS OF LAST QUARTER';
const PLEDGED = 'NO. OF SHARES PLEDGED IN THE DEPOSITORY SYSTEM';

const list = {
  name: 'nse-pledges',
  dataSet: 'CompanyPledges',
  exchange: 'NSE',
  greatestFirst: 'totIssuedShares',
} as const;

/** The fields of the JSON, whose names are those of the data set. */
const FIELDS = [
  'broadcastDt',
  'comName',
  'compBroadcastDate',
  'disclosureFromDate',
  'disclosureToDate',
  'nbfcNonPromoShare',
  'nbfcPromoShare',
  'noOfPledgeShare',
  'noOfSecPledgeShare',
  'numSharesPledged',
  'percPromoterHolding',
  'percPromoterShares',
  'percSharesPledged',
  'percTotShares',
  'sharesCollateral',
  'shp',
  'totDematShares',
  'totIssuedShares',
  'totPromoterHolding',
  'totPromoterShares',
  'totPublicHolding',
];

/** NSE's list of pledged shares: what its page receives, and the CSV that it offers, which has fewer fields. */
export default [
  defineFormat({
    ...list,
    files: ['corporate-pledgedata.json'],
    rank: 1,
    marks: ['comName', 'broadcastDt', 'numSharesPledged'],
    columns: Object.fromEntries(FIELDS.map((field) => [field, field])),
  }),
  defineFormat({
    ...list,
    files: ['CF-SAST-Pledged-Data-DD-MMM-YYYY.csv'],
    marks: ['NAME OF COMPANY', 'BROADCAST DATE', `${PLEDGED} NO. OF SHARES PLEDGED`],
    columns: {
      'NAME OF COMPANY': 'comName',
      'TOTAL NO. OF ISSUED SHARES A+B+C': 'totIssuedShares',
      'TOTAL PROMOTER HOLDING NO. OF SHARES (A)': 'totPromoterHolding',
      'TOTAL PROMOTER HOLDING % A /(A+B+C)': 'percPromoterHolding',
      'TOTAL PUBLIC HOLDING B': 'totPublicHolding',
      [`${ENCUMBERED} NO. OF SHARES (X)`]: 'totPromoterShares',
      [`${ENCUMBERED} % OF PROMOTER SHARES (X/A)`]: 'percPromoterShares',
      [`${ENCUMBERED} % OF TOTAL SHARES [X/(A+B+C)]`]: 'percTotShares',
      [`${ENCUMBERED} VALUES(RS.CR.)=NO. OF SHARES ENCUMBERED [X] * LAST AVAILABLE CLOSING PRICE OF THE SCRIP`]:
        'noOfPledgeShare',
      [`${PLEDGED} NO. OF SHARES PLEDGED`]: 'numSharesPledged',
      [`${PLEDGED} TOTAL NO. OF DEMAT SHARES`]: 'totDematShares',
      '(%) PLEDGE / DEMAT': 'percSharesPledged',
      'VALUES(RS. CR.)': 'noOfSecPledgeShare',
      'BROADCAST DATE': 'broadcastDt',
    },
  }),
];

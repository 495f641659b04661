import { defineBuiltIn } from '../built-in.ts';
import { int4, text } from '../fields.ts';
import { defineTable } from '../table.ts';

const SHIFTED = 'As sent: in the published sample the values from the address on are shifted.';

const table = defineTable({
  name: 'company_contacts',
  comment: 'Registered data of companies: address, secretary and registrar.',
  key: ['exchange', 'scrip_code', 'symbol'],
  fields: [
    int4('ScripCode', 'scrip_code', 'Security code of the exchange; 0 when left out.', { absent: 0 }),
    text('Symbol', 'symbol', 'Ticker symbol; empty when left out.', { absent: '', orElse: ['ScripId'] }),
    text('CompanyName', 'company_name', 'Name of the company.', { orElse: ['ScripName'] }),
    text('ISIN', 'isin', 'International Securities Identification Number.'),
    text('Address', 'address', `Registered address. ${SHIFTED}`),
    text('ContactDetails', 'contact_details', `Telephone numbers. ${SHIFTED}`),
    text('Email', 'email', `E-mail address. ${SHIFTED}`),
    text('CompanySecretaryName', 'company_secretary_name', `Name of the company secretary. ${SHIFTED}`),
    text('Designation', 'designation', `Designation of the company secretary. ${SHIFTED}`),
    text('RtaName', 'rta_name', `Name of the registrar and transfer agent. ${SHIFTED}`),
    text('RtaEmail', 'rta_email', `E-mail address of the registrar. ${SHIFTED}`),
    text('RtaContact', 'rta_contact', `Telephone number of the registrar. ${SHIFTED}`),
    text('Rn', 'rn', `Reference of the source. ${SHIFTED}`),
  ],
});

/**
 * Documented: the fields, and that instruments are required, at most 25 a request. The values of the sample are shifted:
 * the source split a line of CSV at commas inside quotes. They are stored as sent, because nothing shows which record
 * that befell. Assumed: the key.
 */
export default defineBuiltIn({
  name: 'GetCompanyData',
  title: 'Company contacts',
  group: 'reference',
  summary: 'Registered data of companies',
  exchanges: ['BSE'],
  request: { dates: 'none', instruments: 'many', dTFormat: true, options: [] },
  shapes: [
    {
      table,
      has: [],
      hasOneOf: ['CompanyName', 'Address', 'RtaName'],
      namedBy: ['ScripCode', 'Symbol', 'ScripId'],
      symbolColumn: 'symbol',
      dated: false,
      fullSet: 'none',
    },
  ],
  windows: {
    per: 'instrument',
    days: 'none',
    // The operation takes no dates: its response is that of the day of the call.
    requests: ({ today }) => [{ variant: '', from: today, to: today, params: {} }],
  },
  schedule: { at: '22:52', on: 'daily', hasLookback: false, spread: 'week' },
  emptyIsNormal: true,
});

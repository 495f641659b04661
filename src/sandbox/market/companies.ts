import { between, chance, hashText, pick } from './hash.ts';

/** A company, which may be listed on both exchanges. */
export interface Company {
  readonly symbol: string;
  readonly name: string;
  readonly isin: string;
  /** Security code at BSE. */
  readonly code: number;
  /** Price around which it trades today, in paise. */
  readonly paise: number;
  readonly industry: Industry;
  readonly seed: number;
  readonly wellKnown: boolean;
  readonly onBse: boolean;
  readonly onNse: boolean;
}

/** Real companies: symbol | BSE code | ISIN | name | price | basic industry. Odd symbols come first. */
const WELL_KNOWN = `
TCS|532540|INE467B01029|TATA CONSULTANCY SERVICES LTD.|3084.70|IN080101001
RELIANCE|500325|INE002A01018|RELIANCE INDUSTRIES LTD.|1357.20|IN030103001
M&M|500520|INE101A01026|MAHINDRA & MAHINDRA LTD.|3199.50|IN020101001
BAJAJ-AUTO|532977|INE917I01010|BAJAJ AUTO LTD.|8631.50|IN020101002
GVT&D|522275|INE200A01026|GE VERNOVA T&D INDIA LIMITED|2779.20|IN070203001
IDEA|532822|INE669E01016|VODAFONE IDEA LIMITED|6.49|IN100101001
SBIN|500112|INE062A01020|STATE BANK OF INDIA|802.50|IN050102001
INFY|500209|INE009A01021|INFOSYS LTD.|1469.60|IN080101001
WIPRO|507685|INE075A01022|WIPRO LTD.|249.41|IN080101001
ABB|500002|INE117A01022|ABB INDIA LIMITED|4999.00|IN070203001
HDFCBANK|500180|INE040A01034|HDFC BANK LTD.|951.60|IN050102002
ITC|500875|INE154A01025|ITC LTD.|409.75|IN040107001
DRREDDY|500124|INE089A01031|DR.REDDYS LABORATORIES LTD.|1260.10|IN060101001
`;

const FIRST =
  'ASTRA BHAVYA CHETAK DEVKI ESHA FALGUN GANGA HIMA INDRA JYOTI KAVERI LAKSH MANGAL NIRMA OMKAR PAVAN RATNA SAGAR TEJAS UDAY VAJRA YAMUNA ZEN ARUN BALA CHAND DURGA GAURI HARI KIRAN MEGHA NEEL PRABHA RAVI SURYA TARA VARUN ANAND'.split(
    ' ',
  );
/** Second half of a made-up symbol, the word for it in the name, and its basic industry. */
const SECOND = [
  ['CHEM', 'CHEMICALS', 'IN010101002'],
  ['METAL', 'METALS', 'IN010303001'],
  ['AUTO', 'AUTO COMPONENTS', 'IN020102001'],
  ['HOTEL', 'HOTELS', 'IN020601001'],
  ['PETRO', 'REFINERIES', 'IN030103001'],
  ['FOOD', 'FOODS', 'IN040104004'],
  ['FIN', 'FINANCE', 'IN050101004'],
  ['LAB', 'LABORATORIES', 'IN060101001'],
  ['SOFT', 'SOFTWARE', 'IN080101001'],
  ['POWER', 'POWER', 'IN110101004'],
] as const;

/** A valid ISIN: two letters, nine characters, and the Luhn check digit of ISO 6166. */
function makeIsin(body: string): string {
  const digits = [...body].map((sign) => Number.parseInt(sign, 36).toString()).join('');
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i]);
    const doubled = i % 2 === 0 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return `${body}${(10 - (sum % 10)) % 10}`;
}

function readCompany(line: string): Company {
  const [symbol = '', code, isin = '', name = '', price, industry = ''] = line.split('|');
  return {
    symbol,
    name,
    isin,
    code: Number(code),
    paise: Math.round(Number(price) * 100),
    industry: findIndustry(industry),
    seed: hashText(isin),
    wellKnown: true,
    onBse: true,
    onNse: true,
  };
}

function inventCompany(index: number): Company {
  const first = pick(FIRST, index);
  const at = Math.floor(index / FIRST.length);
  const [ending, word, code] = pick(SECOND, index * 7 + at);
  const round = at < SECOND.length ? '' : String(1 + Math.floor(at / SECOND.length));
  // No well-known company has an issuer that ends in Z.
  const isin = makeIsin(`INE${index.toString(36).toUpperCase().padStart(3, '0')}Z0101`);
  const seed = hashText(isin);
  const side = chance(seed, 0, 1);
  return {
    symbol: `${first}${ending}${round}`,
    name: `${first} ${word} ${round}`.trim().concat(' LTD.'),
    isin,
    code: 570_000 + index,
    // Most shares cost tens to hundreds of rupees, a few cost thousands.
    paise: Math.round(900 * 1.0009 ** between(0, 6_800, seed, 0, 2)),
    industry: findIndustry(code),
    seed,
    wellKnown: false,
    onBse: side < 0.88,
    onNse: side > 0.12,
  };
}

/** An endless sequence of companies in a fixed order, the well-known ones first. */
export function* companies(): Generator<Company> {
  for (const line of WELL_KNOWN.trim().split('\n')) yield readCompany(line);
  for (let index = 0; ; index++) yield inventCompany(index);
}

/** A basic industry with the levels above it; each code extends the one above. */
export type Industry = Readonly<ReturnType<typeof readIndustry>>;

/** Basic industry code | macro-economic sector | sector | industry | basic industry (NSE, July 2023). */
const TABLE = `
IN010101002|Commodities|Chemicals|Chemicals & Petrochemicals|Specialty Chemicals
IN010303001|Commodities|Metals & Mining|Diversified Metals|Diversified Metals
IN020101001|Consumer Discretionary|Automobile and Auto Components|Automobiles|Passenger Cars & Utility Vehicles
IN020101002|Consumer Discretionary|Automobile and Auto Components|Automobiles|2/3 Wheelers
IN020102001|Consumer Discretionary|Automobile and Auto Components|Auto Components|Auto Components & Equipments
IN020601001|Consumer Discretionary|Consumer Services|Leisure Services|Hotels & Resorts
IN030103001|Energy|Oil, Gas & Consumable Fuels|Petroleum Products|Refineries & Marketing
IN040104004|Fast Moving Consumer Goods|Fast Moving Consumer Goods|Food Products|Packaged Foods
IN040107001|Fast Moving Consumer Goods|Fast Moving Consumer Goods|Diversified FMCG|Diversified FMCG
IN050101004|Financial Services|Financial Services|Finance|Non Banking Financial Company (NBFC)
IN050102001|Financial Services|Financial Services|Banks|Public Sector Bank
IN050102002|Financial Services|Financial Services|Banks|Private Sector Bank
IN060101001|Healthcare|Healthcare|Pharmaceuticals & Biotechnology|Pharmaceuticals
IN070203001|Industrials|Capital Goods|Electrical Equipment|Heavy Electrical Equipment
IN080101001|Information Technology|Information Technology|IT - Software|Computers - Software & Consulting
IN100101001|Telecommunication|Telecommunication|Telecom - Services|Telecom - Cellular & Fixed line services
IN110101004|Utilities|Power|Power|Power Generation
`;

function readIndustry(line: string) {
  const [code = '', macro = '', sector = '', industry = '', name = ''] = line.split('|');
  return {
    macroCode: code.slice(0, 4),
    macro,
    sectorCode: code.slice(0, 6),
    sector,
    industryCode: code.slice(0, 8),
    industry,
    code,
    name,
  };
}

const industries: readonly Industry[] = TABLE.trim().split('\n').map(readIndustry);

/** @throws Error for a code outside the table. */
function findIndustry(code: string): Industry {
  const known = industries.find((candidate) => candidate.code === code);
  if (known === undefined) throw new Error(`no basic industry ${code}`);
  return known;
}

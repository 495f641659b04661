import { between, chance, hashText } from './hash.ts';

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
M&MFIN|532720|INE774D01024|MAHINDRA & MAHINDRA FINANCIAL|253.95|IN050101004
BAJAJ-AUTO|532977|INE917I01010|BAJAJ AUTO LTD.|8631.50|IN020101002
GVT&D|522275|INE200A01026|GE VERNOVA T&D INDIA LIMITED|2779.20|IN070203001
L&TFH|533519|INE498L01015|L&T FINANCE LIMITED|217.16|IN050101004
ARE&M|500008|INE885A01032|AMARA RAJA ENERGY & MOBILITY L|990.25|IN020102001
IDEA|532822|INE669E01016|VODAFONE IDEA LIMITED|6.49|IN100101001
SBIN|500112|INE062A01020|STATE BANK OF INDIA|802.50|IN050102001
INFY|500209|INE009A01021|INFOSYS LTD.|1469.60|IN080101001
HCLTECH|532281|INE860A01027|HCL TECHNOLOGIES LTD.|1454.80|IN080101001
WIPRO|507685|INE075A01022|WIPRO LTD.|249.41|IN080101001
TECHM|532755|INE669C01036|TECH MAHINDRA LTD.|1481.40|IN080101001
MARUTI|532500|INE585B01010|MARUTI SUZUKI INDIA LTD.|14791.00|IN020101001
EICHERMOT|505200|INE066A01021|EICHER MOTORS LTD.|6103.00|IN020101001
BAJFINANCE|500034|INE296A01032|BAJAJ FINANCE LIMITED|877.85|IN050101004
HEROMOTOCO|500182|INE158A01026|HERO MOTOCORP LTD.|5087.70|IN020101002
ABB|500002|INE117A01022|ABB INDIA LIMITED|4999.00|IN070203001
SIEMENS|500550|INE003A01024|SIEMENS LTD.|3063.70|IN070203001
S&SPOWER|517273|INE902B01017|S&S POWER SWITCHGEAR LTD.|405.90|IN070203001
HAVELLS|517354|INE176B01034|HAVELLS INDIA LTD.|1525.60|IN070203001
BOSCHLTD|500530|INE323A01026|BOSCH LTD.|39960.00|IN020102001
BHARTIARTL|532454|INE397D01024|BHARTI AIRTEL LTD.|1888.80|IN100101001
HDFCBANK|500180|INE040A01034|HDFC BANK LTD.|951.60|IN050102002
ICICIBANK|532174|INE090A01021|ICICI BANK LTD.|1397.80|IN050102002
KOTAKBANK|500247|INE237A01028|KOTAK MAHINDRA BANK LTD.|1960.30|IN050102002
AXISBANK|532215|INE238A01034|AXIS BANK LTD.|1045.20|IN050102002
J&KBANK|532209|INE168A01041|JAMMU & KASHMIR BANK LTD.|98.92|IN050102002
ITC|500875|INE154A01025|ITC LTD.|409.75|IN040107001
HINDUNILVR|500696|INE030A01027|HINDUSTAN UNILEVER LTD.|2659.80|IN040107001
SUNPHARMA|524715|INE044A01036|SUN PHARMACEUTICAL INDUSTRIES|1594.50|IN060101001
CIPLA|500087|INE059A01026|CIPLA LTD.|1589.40|IN060101001
DRREDDY|500124|INE089A01031|DR.REDDYS LABORATORIES LTD.|1260.10|IN060101001
DIVISLAB|532488|INE361B01024|DIVIS LABORATORIES LTD.|6131.50|IN060101001
TITAN|500114|INE280A01028|TITAN COMPANY LIMITED|3628.80|IN020201005
ULTRACEMCO|532538|INE481G01011|ULTRATECH CEMENT LTD.|12640.00|IN010203001
GRASIM|500300|INE047A01021|GRASIM INDUSTRIES LTD.|2775.60|IN010203001
NTPC|532555|INE733E01010|NTPC LTD.|327.55|IN110101004
POWERGRID|532898|INE752E01010|POWER GRID CORPORATION OF INDI|275.25|IN110101004
TATAPOWER|500400|INE245A01021|TATA POWER CO.LTD.|374.15|IN110101004
GMRP&UI|543490|INE0CU601026|GMR POWER AND URBAN INFRA LIMI|110.18|IN110101004
ONGC|500312|INE213A01029|OIL AND NATURAL GAS CORPORATIO|233.71|IN030102001
COALINDIA|533278|INE522F01014|COAL INDIA LTD.|374.80|IN030102001
TATASTEEL|500470|INE081A01020|TATA STEEL LTD.|154.48|IN070205015
JSWSTEEL|500228|INE019A01038|JSW STEEL LTD.|1026.60|IN070205015
NESTLEIND|500790|INE239A01024|NESTLE INDIA LTD.|1156.20|IN040104004
BRITANNIA|500825|INE216A01030|BRITANNIA INDUSTRIES LTD.|5824.00|IN040104004
ASIANPAINT|500820|INE021A01026|ASIAN PAINTS LTD.|2518.60|IN020201015
LT|500510|INE018A01030|LARSEN & TOUBRO LTD.|3601.00|IN070101001
ADANIPORTS|532921|INE742F01042|ADANI PORTS AND SPECIAL ECONOM|1312.80|IN090103002
HINDALCO|500440|INE038A01020|HINDALCO INDUSTRIES LTD.|703.95|IN010303001
VEDL|500295|INE205A01025|VEDANTA LIMITED|420.65|IN010303001
DLF|532868|INE271C01023|DLF LTD.|739.05|IN020501001
GODREJCP|532424|INE102D01028|GODREJ CONSUMER PRODUCTS LTD.|1242.60|IN040105001
DABUR|500096|INE016A01026|DABUR INDIA LTD.|521.10|IN040105001
COLPAL|500830|INE259A01022|COLGATE-PALMOLIVE (INDIA) LTD.|2331.80|IN040105001
PIDILITIND|500331|INE318A01026|PIDILITE INDUSTRIES LTD.|3050.30|IN010101002
MRF|500290|INE883A01011|MRF LTD.|140955.00|IN020102006
PAGEIND|532827|INE761H01022|PAGE INDUSTRIES LTD.|44335.00|IN020301001
`;

/** Tickers that belong to two different companies on the two exchanges, as some real ones do. */
const SHARED_TICKERS = ['SEL', 'KORE', 'ZEAL'];

const FIRST =
  'ASTRA BHAVYA CHETAK DEVKI ESHA FALGUN GANGA HIMA INDRA JYOTI KAVERI LAKSH MANGAL NIRMA OMKAR PAVAN RATNA SAGAR TEJAS UDAY VAJRA YAMUNA ZEN ARUN BALA CHAND DURGA GAURI HARI KIRAN MEGHA NEEL PRABHA RAVI SURYA TARA VARUN ANAND'.split(
    ' ',
  );
/** Second half of a made-up symbol, the word for it in the name, and its basic industry. */
const SECOND = [
  ['CHEM', 'CHEMICALS', 'IN010101002'],
  ['DYES', 'DYES & PIGMENTS', 'IN010101004'],
  ['CEM', 'CEMENT', 'IN010203001'],
  ['METAL', 'METALS', 'IN010303001'],
  ['PAPER', 'PAPER MILLS', 'IN010401001'],
  ['AUTO', 'AUTO COMPONENTS', 'IN020102001'],
  ['TYRE', 'TYRES', 'IN020102006'],
  ['GEMS', 'GEMS & JEWELLERY', 'IN020201005'],
  ['WEAR', 'APPARELS', 'IN020301001'],
  ['TEX', 'TEXTILES', 'IN020301002'],
  ['REAL', 'REALTY', 'IN020501001'],
  ['HOTEL', 'HOTELS', 'IN020601001'],
  ['SUGAR', 'SUGAR MILLS', 'IN040101002'],
  ['FOOD', 'FOODS', 'IN040104004'],
  ['FIN', 'FINANCE', 'IN050101004'],
  ['LAB', 'LABORATORIES', 'IN060101001'],
  ['CARE', 'HOSPITALS', 'IN060103001'],
  ['INFRA', 'INFRASTRUCTURE', 'IN070101001'],
  ['PLAST', 'PLASTICS', 'IN070205009'],
  ['STEEL', 'STEEL', 'IN070205015'],
  ['SOFT', 'SOFTWARE', 'IN080101001'],
  ['LOGI', 'LOGISTICS', 'IN090102002'],
  ['POWER', 'POWER', 'IN110101004'],
] as const;

/** A valid ISIN: two letters, nine characters, and the Luhn check digit of ISO 6166. */
export function isinOf(body: string): string {
  const digits = [...body].map((sign) => Number.parseInt(sign, 36).toString()).join('');
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i]);
    const doubled = i % 2 === 0 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return `${body}${(10 - (sum % 10)) % 10}`;
}

function wellKnown(line: string): Company {
  const [symbol = '', code, isin = '', name = '', price, industry = ''] = line.split('|');
  return {
    symbol,
    name,
    isin,
    code: Number(code),
    paise: Math.round(Number(price) * 100),
    industry: industryOf(industry),
    seed: hashText(isin),
    wellKnown: true,
    onBse: true,
    onNse: true,
  };
}

function madeUp(index: number): Company {
  const first = FIRST[index % FIRST.length] as string;
  const at = Math.floor(index / FIRST.length);
  const [ending, word, code] = SECOND[(index * 7 + at) % SECOND.length] as (typeof SECOND)[number];
  const round = at < SECOND.length ? '' : String(1 + Math.floor(at / SECOND.length));
  const isin = isinOf(
    `INE${String(index).padStart(4, '0').slice(-4)}${'ABCDEFGH'[(index / 10_000) | 0]}01`.padEnd(11, '0'),
  );
  const seed = hashText(isin);
  const side = chance(seed, 0, 1);
  // Most shares cost tens to hundreds of rupees, a few cost thousands.
  const paise = Math.round(900 * 1.0009 ** between(0, 6_800, seed, 0, 2));
  return {
    symbol: `${first}${ending}${round}`,
    name: `${first} ${word} ${round}`.trim().concat(' LTD.'),
    isin,
    code: 570_000 + index,
    paise,
    industry: industryOf(code),
    seed,
    wellKnown: false,
    onBse: side < 0.88,
    onNse: side > 0.12,
  };
}

/** A company whose ticker belongs to another company on the other exchange: SEL at BSE is not SEL at NSE. */
function companyWithSharedTicker(symbol: string, index: number, exchange: 'BSE' | 'NSE'): Company {
  const isin = isinOf(`INE${exchange === 'BSE' ? 'B' : 'N'}0${index}Z0101`);
  const seed = hashText(isin);
  return {
    symbol,
    name: `${symbol} ${exchange === 'BSE' ? 'ENTERPRISES' : 'EXPORTS'} LTD.`,
    isin,
    code: (exchange === 'BSE' ? 509_000 : 508_000) + index,
    paise: between(900, 40_000, seed, 0, 2),
    industry: industries[hashText(symbol + exchange) % industries.length] as Industry,
    seed,
    wellKnown: false,
    onBse: exchange === 'BSE',
    onNse: exchange === 'NSE',
  };
}

/** An endless sequence of companies in a fixed order, the well-known ones first. */
export function* companies(): Generator<Company> {
  for (const line of WELL_KNOWN.trim().split('\n')) yield wellKnown(line);
  for (const [index, symbol] of SHARED_TICKERS.entries()) {
    yield companyWithSharedTicker(symbol, index, 'BSE');
    yield companyWithSharedTicker(symbol, index, 'NSE');
  }
  for (let index = 0; ; index++) yield madeUp(index);
}

/** A basic industry with the levels above it; each code extends the one above. */
export type Industry = Readonly<ReturnType<typeof industry>>;

/** Basic industry code | macro-economic sector | sector | industry | basic industry (NSE, July 2023). */
const TABLE = `
IN010101002|Commodities|Chemicals|Chemicals & Petrochemicals|Specialty Chemicals
IN010101004|Commodities|Chemicals|Chemicals & Petrochemicals|Dyes And Pigments
IN010203001|Commodities|Construction Materials|Cement & Cement Products|Cement & Cement Products
IN010303001|Commodities|Metals & Mining|Diversified Metals|Diversified Metals
IN010401001|Commodities|Forest Materials|Paper, Forest & Jute Products|Paper & Paper Products
IN020101001|Consumer Discretionary|Automobile and Auto Components|Automobiles|Passenger Cars & Utility Vehicles
IN020101002|Consumer Discretionary|Automobile and Auto Components|Automobiles|2/3 Wheelers
IN020102001|Consumer Discretionary|Automobile and Auto Components|Auto Components|Auto Components & Equipments
IN020102006|Consumer Discretionary|Automobile and Auto Components|Auto Components|Tyres & Rubber Products
IN020201005|Consumer Discretionary|Consumer Durables|Consumer Durables|Gems, Jewellery And Watches
IN020201015|Consumer Discretionary|Consumer Durables|Consumer Durables|Paints
IN020301001|Consumer Discretionary|Textiles|Textiles & Apparels|Garments & Apparels
IN020301002|Consumer Discretionary|Textiles|Textiles & Apparels|Other Textile Products
IN020501001|Consumer Discretionary|Realty|Realty|Residential, Commercial Projects
IN020601001|Consumer Discretionary|Consumer Services|Leisure Services|Hotels & Resorts
IN030102001|Energy|Oil, Gas & Consumable Fuels|Oil|Oil Exploration & Production
IN030103001|Energy|Oil, Gas & Consumable Fuels|Petroleum Products|Refineries & Marketing
IN040101002|Fast Moving Consumer Goods|Fast Moving Consumer Goods|Agricultural Food & other Products|Sugar
IN040104004|Fast Moving Consumer Goods|Fast Moving Consumer Goods|Food Products|Packaged Foods
IN040105001|Fast Moving Consumer Goods|Fast Moving Consumer Goods|Personal Products|Personal Care
IN040107001|Fast Moving Consumer Goods|Fast Moving Consumer Goods|Diversified FMCG|Diversified FMCG
IN050101004|Financial Services|Financial Services|Finance|Non Banking Financial Company (NBFC)
IN050102001|Financial Services|Financial Services|Banks|Public Sector Bank
IN050102002|Financial Services|Financial Services|Banks|Private Sector Bank
IN060101001|Healthcare|Healthcare|Pharmaceuticals & Biotechnology|Pharmaceuticals
IN060103001|Healthcare|Healthcare|Healthcare Services|Hospital
IN070101001|Industrials|Construction|Construction|Civil Construction
IN070203001|Industrials|Capital Goods|Electrical Equipment|Heavy Electrical Equipment
IN070205009|Industrials|Capital Goods|Industrial Products|Plastic Products - Industrial
IN070205015|Industrials|Capital Goods|Industrial Products|Iron & Steel Products
IN080101001|Information Technology|Information Technology|IT - Software|Computers - Software & Consulting
IN090102002|Services|Services|Transport Services|Logistics Solution Provider
IN090103002|Services|Services|Transport Infrastructure|Port & Port services
IN100101001|Telecommunication|Telecommunication|Telecom - Services|Telecom - Cellular & Fixed line services
IN110101004|Utilities|Power|Power|Power Generation
`;

function industry(line: string) {
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

export const industries: readonly Industry[] = TABLE.trim().split('\n').map(industry);

const byCode = new Map(industries.map((one) => [one.code, one]));

/** @throws Error for a code outside the table. */
function industryOf(code: string): Industry {
  const found = byCode.get(code);
  if (found === undefined) throw new Error(`no basic industry ${code}`);
  return found;
}

/** A basic industry with the levels above it; each code extends the one above. */
export interface Industry {
  readonly macroCode: string;
  readonly macro: string;
  readonly sectorCode: string;
  readonly sector: string;
  readonly industryCode: string;
  readonly industry: string;
  readonly code: string;
  readonly name: string;
}

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

function industry(line: string): Industry {
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
export function industryOf(code: string): Industry {
  const found = byCode.get(code);
  if (found === undefined) throw new Error(`no basic industry ${code}`);
  return found;
}

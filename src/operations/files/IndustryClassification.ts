import { text } from '../../declaration/fields.ts';
import { defineFileSet } from '../../declaration/operation.ts';
import { defineTable } from '../../declaration/table.ts';

const table = defineTable({
  name: 'industry_classification',
  comment: "NSE's classification of industries, one row a basic industry; each code extends the one above.",
  key: ['exchange', 'basic_industry_code'],
  fields: [
    text('basicIndustryCode', 'basic_industry_code', 'Code of the basic industry.', { required: true }),
    text('meiCode', 'macro_sector_code', 'Code of the macro-economic sector.'),
    text('macroEconomicIndicator', 'macro_sector', 'Macro-economic sector.'),
    text('sectCode', 'sector_code', 'Code of the sector.'),
    text('sector', 'sector', 'Sector.'),
    text('industryCode', 'industry_code', 'Code of the industry.'),
    text('industry', 'industry', 'Industry.'),
    text('basicIndustry', 'basic_industry', 'Basic industry; names repeat over levels.'),
  ],
});

export default defineFileSet({
  name: 'IndustryClassification',
  title: 'Classification of industries',
  group: 'reference',
  summary: "Codes and names of NSE's classification",
  shapes: [{ table, has: ['basicIndustryCode'], dated: false, fullSet: 'none' }],
});

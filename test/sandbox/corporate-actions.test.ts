import { expect, test } from 'vitest';
import { operationNamed } from '../../src/operations/registry.ts';
import { range, records, sandbox } from './support.ts';

const NAME = 'GetCorporateActions';
/** From a week before the newest trading day to a month after it. */
const DAYS = range('2025-09-05', '2025-10-12');

const sent = async (params: Readonly<Record<string, string>> = {}, days = DAYS) =>
  records(await sandbox({ instrumentsPerExchange: 300, splits: true }), NAME, { ...days, ...params });

const dayOf = (text: unknown) => String(text).replace(/^(\d\d)-(\d\d)-(\d{4}).*/, '$3-$1-$2');

test('actions have the form of the published sample', async () => {
  const [published = {}] = await sent();
  const { Value: [sample = {}] = [] } = operationNamed(NAME).sample.response as { Value?: object[] };
  expect(Object.keys(published).sort()).toEqual(Object.keys(sample).sort());
  expect(published).toMatchObject({
    ActionId: 0,
    AnnouncementDate: expect.stringMatching(/^\d\d-\d\d-2025 16:36:03$/),
    NdEndDate: '01-01-0001 00:00:00',
    ScripFaceValue: expect.stringMatching(/^\d+\.0$/),
  });
});

test('a range selects ex-dates, also to come; nothing is sent before it is announced', async () => {
  const actions = await sent();
  const byExDate = actions.map(({ ProvXdate }) => dayOf(ProvXdate));
  expect(byExDate.every((day) => day >= '2025-09-05' && day <= '2025-10-12')).toBe(true);
  expect(byExDate.some((day) => day > '2025-09-12')).toBe(true);
  expect(actions.every((action) => dayOf(action.AnnouncementDate) <= '2025-09-12')).toBe(true);
});

test('actions are selected by their kind, their code and the instrument', async () => {
  const all = await sent();
  const [split] = all.filter(({ CorporateActionType }) => CorporateActionType === 'Stock Split');
  expect(split).toMatchObject({ PurposeCode: 'SS ', RatioAmount: '5:1' });
  expect(await sent({ actionType: 'Stock Split' })).toEqual(
    all.filter(({ PurposeCode }) => PurposeCode === 'SS '),
  );
  expect(await sent({ purposeCode: 'SS' })).toEqual(await sent({ actionType: 'Stock Split' }));
  const symbol = String(split?.ScripId);
  const actionsOfSymbol = await sent({ instrumentIdentifier: symbol });
  expect(actionsOfSymbol).toEqual(all.filter(({ ScripId }) => ScripId === symbol));
});

test('the splits are those of the simulated prices, and no other action changes prices', async () => {
  const source = await sandbox({ instrumentsPerExchange: 300, splits: true });
  const week = ['2025-09-08', '2025-09-12'] as const;
  const actions = await records(source, NAME, range(...week));
  const ratios = actions.flatMap(({ ScripId, ProvXdate, RatioAmount, PurposeCode }) =>
    ['SS ', 'CS '].includes(String(PurposeCode)) ? [[ScripId, dayOf(ProvXdate), RatioAmount].join(' ')] : [],
  );
  const splits = source.splits(...week).map(({ symbol, exDate, ratio }) => `${symbol} ${exDate} ${ratio}`);
  expect(ratios.sort()).toEqual(splits.sort());
  expect(actions.filter(({ PurposeCode }) => ['BN ', 'DM ', 'RT '].includes(String(PurposeCode)))).toEqual(
    [],
  );
});

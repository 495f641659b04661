import { test } from 'vitest';
import { openStage, windowsOf } from './support.ts';
test.each([1,2,3,4,5,6,7,8])('x %i', async () => {
  const stage = await openStage({ behaviour: { historyDays: 3 } });
  const report = await stage.run({ from: '2025-09-08', to: '2025-09-11', operations: ['GetBhavCopyCM'], exchanges: ['NSE'] });
  console.log(report.state, JSON.stringify(report.windows), JSON.stringify((await windowsOf(stage, report.runId)).map((w) => [w.state, w.error])));
});

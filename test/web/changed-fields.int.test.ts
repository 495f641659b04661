import { expect, test } from 'vitest';
import { openPipeline } from '../support/pipeline.ts';
import { serve } from '../support/serve.ts';

test('a field that the source has begun to send is on the page and in the metrics, for thirty days', async () => {
  const context = await openPipeline({});
  const { url } = await serve(context, ['web']);
  const page = async () => (await fetch(`${url}/issues`)).text();
  expect(await page()).toContain('Nothing needs a person.');
  // Of the first run, and of a later one: an old one, and one of today with a name that is no HTML.
  const field = (name: string) =>
    JSON.stringify([{ name, plain: name.toLowerCase(), type: 'number', example: '1' }]);
  await context.db.pool.query(
    `insert into etl.response_layouts (operation, exchange, layout, fields, first_position, first_run_id, last_position, last_run_id, responses, counts)
     values ('GetCircuitBreakers', 'NSE', 1, $1, now() - interval '50 days', 1, now(), 3, 9, '{9,9}'),
            ('GetCircuitBreakers', 'NSE', 2, $2, now() - interval '40 days', 2, now(), 3, 9, '{9,9}'),
            ('GetCircuitBreakers', 'NSE', 3, $3, now(), 3, now(), 3, 1, '{1,1}')`,
    [field('Symbol'), field('Older'), field('<b>Newer')],
  );
  const changed = await page();
  expect(changed).toContain('1 changed field.');
  expect(changed).toContain('&lt;b>Newer');
  expect(changed).toContain('eod operations draft GetCircuitBreakers');
  expect(changed).not.toContain('Older');
  const { url: scraped } = await serve(context, ['scheduler']);
  expect(await (await fetch(`${scraped}/metrics`)).text()).toContain(
    'eod_schema_changes{operation="GetCircuitBreakers",exchange="NSE",change="new"} 1',
  );
});

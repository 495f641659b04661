import { describe, expect, test } from 'vitest';
import { nightlyRequest } from '../../../src/jobs/runs/nightly-request.ts';
import { operationNamed } from '../../../src/operations/registry.ts';
import type { SandboxOptions } from '../../../src/sandbox/index.ts';
import { sampleOf } from '../../reliability/hostile-records.ts';
import { testDatabase } from '../../support/database.ts';
import { startServer } from '../../support/http-server.ts';
import { isSlowLayer } from '../../support/layer.ts';
import { type BackfillOptions, backfill, openPipeline, runToEnd } from '../../support/pipeline.ts';
import { type Alert, startWebhook, type Webhook } from '../../support/webhook.ts';

const at = (time: string) => ({ now: () => Date.parse(`${time}+05:30`) });

const EVENING = at('2025-09-12T23:30:00');

const DAY = '2025-09-12';

/** A pipeline on a sandbox that has an alert webhook. */
async function openSetup(
  webhook: Webhook,
  sandboxOptions: SandboxOptions,
  { databaseUrl, clock = EVENING }: { readonly databaseUrl?: string; readonly clock?: typeof EVENING } = {},
) {
  const pipeline = await openPipeline({
    databaseUrl: databaseUrl ?? (await testDatabase()).url,
    sandbox: { clock: EVENING, instrumentsPerExchange: 40, ...sandboxOptions },
    clock,
    settings: {
      EOD_ALERT_WEBHOOK: webhook.url,
      EOD_ACCESS_KEY: `key-${Math.random()}`,
      EOD_ATTEMPTS: '1',
      // A night requests each instrument several times: of all of them that is hundreds of windows.
      EOD_INSTRUMENT_LIMIT: '5',
    },
  });
  return { pipeline, run: (options: BackfillOptions) => runToEnd(pipeline, backfill(options)) };
}

const kinds = (alerts: readonly Alert[]) => alerts.map(({ kind }) => kind);

describe('alerts of a run', () => {
  test('a failed run raises one alert, with the reason', async () => {
    const webhook = await startWebhook();
    const { pipeline } = await openSetup(webhook, {
      behaviour: { faults: [{ kind: 'status', value: '404', operation: 'GetCircuitBreakers' }] },
    });
    const request = backfill({ from: DAY, to: DAY, operations: ['GetCircuitBreakers', 'GetBhavCopyCM'] });
    const report = await runToEnd(pipeline, request);
    expect(report.state).toBe('failed');
    expect(kinds(webhook.alerts)).toEqual(['run_failed']);
    expect(webhook.alerts[0]).toMatchObject({
      subject: 'backfill: GetCircuitBreakers NSE',
      text: expect.stringMatching(
        new RegExp(
          `^eod: the source responded with HTTP status 404 \\(\\d\\d:\\d\\d, 1 window of GetCircuitBreakers NSE\\); run ${report.runId} \\(backfill, ${DAY}\\) failed$`,
        ),
      ),
      facts: { run: report.runId, from: DAY, to: DAY },
    });

    // Anyone who started it in a terminal sees it fail.
    await runToEnd(pipeline, { ...request, isAttended: true });
    expect((await pipeline.db.pool.query('select repeated from etl.alerts')).rows).toEqual([{ repeated: 0 }]);
    await runToEnd(pipeline, request);
    expect(webhook.alerts).toHaveLength(1);
    const { rows } = await pipeline.db.pool.query(
      'select kind, repeated, attempts, delivered_at is not null as delivered from etl.alerts',
    );
    expect(rows).toEqual([{ kind: 'run_failed', repeated: 1, attempts: 1, delivered: true }]);
  });

  test('a rejected response is one alert, and the counts of one data set are an example of the others', async () => {
    const webhook = await startWebhook();
    const sample = sampleOf(operationNamed('GetBhavCopyCM'));
    // One record is of a day that was not requested, which makes the response suspicious as well.
    const sourceUrl = await startServer((request, response) => {
      const exchange = new URL(request.url ?? '', 'http://source').searchParams.get('exchange') ?? '';
      const records = Array.from({ length: exchange === 'NSE' ? 3 : 5 }, (_, at) => ({
        ...sample,
        Src: exchange,
        Symbol: `SHARE${at}`,
        ...(at === 0 ? { TradDt: '01-02-2025' } : { ClosePrice: 'n/a' }),
      }));
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ Value: records }));
    });
    const settings = { EOD_ALERT_WEBHOOK: webhook.url };
    const pipeline = await openPipeline({ sourceUrl, clock: EVENING, settings });
    const report = await runToEnd(pipeline, backfill({ from: DAY, to: DAY, operations: ['GetBhavCopyCM'] }));
    expect(report.suspicious).toHaveLength(2);
    expect(kinds(webhook.alerts)).toEqual(['run_failed']);
    expect(webhook.alerts[0]?.message).toMatch(
      /^for example, 5 of 5 records were rejected .*2 windows of GetBhavCopyCM BSE, GetBhavCopyCM NSE\); run \d+ /,
    );
  });

  test('a refused access key raises one alert, which does not hold the key', async () => {
    const webhook = await startWebhook();
    const { pipeline, run } = await openSetup(webhook, { accessKey: 'another' });
    await run({ from: '2025-09-08', to: DAY, operations: ['GetBhavCopyCM'] });
    expect(kinds(webhook.alerts)).toEqual(['access_key']);
    expect(webhook.alerts[0]?.facts).toEqual({ diagnostic: 'Access Denied. Key not found.' });
    expect(JSON.stringify(webhook.alerts)).not.toContain(pipeline.config.EOD_ACCESS_KEY);
  });

  test('a night that a refused key stops raises the alert of the key only, besides that of what failed before', async () => {
    const webhook = await startWebhook();
    const { pipeline } = await openSetup(webhook, {
      behaviour: { keyDiesAfter: 3, faults: [{ kind: 'status', value: '404', operation: 'GetBhavCopyCM' }] },
    });
    const report = await runToEnd(pipeline, await nightlyRequest(pipeline, { date: DAY }));
    expect(report.state).toBe('failed');
    expect(kinds(webhook.alerts).sort()).toEqual(['access_key', 'run_failed']);
    const failed = webhook.alerts.find(({ kind }) => kind === 'run_failed');
    expect(failed?.subject).toMatch(/^nightly: GetBhavCopyCM BSE/);
  });

  test('rows that are missing and were not withdrawn raise an alert', async () => {
    const webhook = await startWebhook();
    const { url } = await testDatabase();
    const options = { from: DAY, to: DAY, operations: ['GetBhavCopyCM'], exchanges: ['NSE'], force: true };
    await (await openSetup(webhook, { instrumentsPerExchange: 100 }, { databaseUrl: url })).run(options);
    expect(webhook.alerts).toEqual([]);
    const later = { databaseUrl: url, clock: at(`${DAY}T23:40:00`) };
    await (await openSetup(webhook, { instrumentsPerExchange: 40 }, later)).run(options);
    expect(kinds(webhook.alerts)).toEqual(['suspicious']);
    expect(webhook.alerts[0]?.message).toMatch(
      /^run \d+ has suspicious windows: Prices, bhavcopy_cm NSE .*rows of market.bhavcopy_cm were not listed any more/,
    );
  });

  test('late data and the gap it leaves are one post', async () => {
    const webhook = await startWebhook();
    // Half past eleven, and the source still has nothing of the day.
    const { pipeline } = await openSetup(webhook, { clock: at(`${DAY}T15:00:00`) });
    const scope = { date: DAY, operation: operationNamed('GetBhavCopyCM'), exchange: 'NSE' };
    await runToEnd(pipeline, await nightlyRequest(pipeline, scope));
    expect(kinds(webhook.alerts)).toEqual(['late_data']);
    expect(webhook.alerts[0]).toMatchObject({
      subject: `GetBhavCopyCM NSE ${DAY}`,
      facts: {
        sessions: [{ operation: 'GetBhavCopyCM', exchange: 'NSE', day: DAY, reason: 'not_published' }],
      },
    });
    expect(webhook.alerts[0]?.message).toBe(
      `1 trading day is missing although due: Prices, bhavcopy_cm NSE ${DAY} (not published yet)`,
    );
  });

  test.runIf(isSlowLayer)(
    'a night that finds older trading days empty raises an alert that says so',
    async () => {
      const webhook = await startWebhook();
      const nothing = await startServer((_, response) =>
        response.setHeader('content-type', 'application/json').end('[]'),
      );
      const empty = await openPipeline({
        sourceUrl: nothing,
        clock: EVENING,
        settings: { EOD_ALERT_WEBHOOK: webhook.url, EOD_LOOKBACK_SESSIONS: '3' },
      });
      const scope = { date: DAY, operation: operationNamed('GetBhavCopyCM'), exchange: 'NSE' };
      await runToEnd(
        empty,
        backfill({ from: '2025-09-01', to: '2025-09-05', operations: ['GetBhavCopyCM'], exchanges: ['NSE'] }),
      );
      expect(kinds(webhook.alerts)).toEqual([]);
      await runToEnd(empty, await nightlyRequest(empty, scope));
      expect(webhook.alerts.map(({ message }) => message).join()).toMatch(
        /Prices, bhavcopy_cm NSE .*\(the source listed nothing\)/,
      );
    },
  );

  test.runIf(isSlowLayer)('a night without problems raises no alert', async () => {
    const webhook = await startWebhook();
    const { pipeline } = await openSetup(webhook, {});
    const report = await runToEnd(pipeline, await nightlyRequest(pipeline, { date: DAY }));
    expect(report.state).toBe('completed');
    expect(webhook.alerts).toEqual([]);
  });
});

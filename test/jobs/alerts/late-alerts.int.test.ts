import { readFileSync } from 'node:fs';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { alertsOfNight } from '../../../src/jobs/alerts/complete-night.ts';
import { checkLateData, startAlertWatch } from '../../../src/jobs/alerts/late-data.ts';
import { deliverAlerts, raiseAlerts, signBody } from '../../../src/jobs/alerts/send-alerts.ts';
import { syncTradingDays } from '../../../src/jobs/responses/sync-sessions.ts';
import { nightlyRequest } from '../../../src/jobs/runs/nightly-request.ts';
import { writeCoverage } from '../../../src/state/coverage/coverage.ts';
import { takePosition } from '../../../src/state/position-sql.ts';
import { manualClock } from '../../sandbox/support.ts';
import { closeAfterFile } from '../../support/closing.ts';
import { startServer } from '../../support/http-server.ts';
import { openPipeline, type Pipeline, runToEnd } from '../../support/pipeline.ts';
import { startProxy } from '../../support/proxy.ts';
import { waitFor } from '../../support/wait-for.ts';
import { startWebhook, type Webhook } from '../../support/webhook.ts';

const at = (time: string) => Date.parse(`${time}+05:30`);
/** A Friday; the Monday after it. */
const DAY = '2025-09-12';
const MONDAY = '2025-09-15';

/** A monitor of heartbeats: it remembers the requests that it got. */
async function startMonitor() {
  const monitor = { url: '', requests: [] as string[], status: 200 };
  const url = await startServer((request, response) => {
    monitor.requests.push(`${request.method} ${request.url}`);
    response.writeHead(monitor.status).end('OK');
  }, closeAfterFile);
  monitor.url = `${url}/ping/kiwi-0815`;
  return monitor;
}

let pipeline: Pipeline;
let monitor: Awaited<ReturnType<typeof startMonitor>>;
let webhook: Webhook;
const clock = manualClock(at(`${DAY}T12:00:00`));

beforeAll(async () => {
  monitor = await startMonitor();
  pipeline = await openPipeline({
    clock,
    settings: { EOD_EXCHANGES: 'NSE' },
  });
  await syncTradingDays(pipeline);
});

beforeEach(async () => {
  webhook = await startWebhook();
  await pipeline.db.pool.query('truncate etl.alerts, etl.coverage, etl.runs, etl.windows');
});

/** The pipeline with settings of its own. */
const withSettings = (settings: Partial<Pipeline['config']>) => ({
  ...pipeline,
  config: { ...pipeline.config, EOD_ALERT_WEBHOOK: webhook.url, ...settings },
});

/** Writes the coverage of a trading day. */
async function cover(
  operation: string,
  day: string,
  state: 'loaded' | 'empty' | 'not_published' | 'blocked' | 'failed' = 'loaded',
  diagnostic?: string,
) {
  await writeCoverage(pipeline.db.drizzle, {
    operation,
    exchange: 'NSE',
    runId: 1,
    windowId: null,
    position: await takePosition(pipeline.db.drizzle),
    coverage: [
      {
        day,
        instrument: '',
        variant: '',
        state,
        records: state === 'loaded' ? 1 : 0,
        ...(diagnostic === undefined ? {} : { diagnostic }),
      },
    ],
  });
}

const alertNames = () => webhook.alerts.map(({ kind, subject }) => `${kind} ${subject}`);

describe('late data', () => {
  /** Looks at a time of the Friday. */
  async function look(time: string, since = at(`${DAY}T12:00:00`), settings = {}) {
    clock.moveTo(at(`${DAY}T${time}`));
    await checkLateData(withSettings(settings), since);
  }

  test('is reported though no night has begun, once, and only what was due for long enough', async () => {
    for (const day of ['2025-09-08', '2025-09-09', '2025-09-10', '2025-09-11']) {
      await cover('GetBhavCopyCM', day);
    }
    // Due at 21:15, and late two hours after that.
    await look('23:14:59');
    expect(alertNames()).toEqual([]);
    await look('23:15:01');
    expect(alertNames()).toEqual([`late_data GetBhavCopyCM NSE ${DAY}`]);
    expect(webhook.alerts[0]?.message).toBe(
      `1 trading day is missing although due: Prices, bhavcopy_cm NSE ${DAY} (not requested yet); check that a scheduler and a worker are running; no worker was seen within the last minute`,
    );
    await look('23:20:00');
    // Then what falls due later, alone.
    await look('23:31:00');
    expect(alertNames().slice(1)).toEqual([`late_data GetCircuitBreakers NSE ${DAY}`]);
    await pipeline.db.pool.query("update etl.alerts set raised_at = raised_at - interval '13 hours'");
    await look('23:32:00');
    expect(webhook.alerts).toHaveLength(2);
  });

  test('is reported when the webhook is back, with the time at which it was raised', async () => {
    const context = withSettings({});
    webhook.status = 500;
    await look('23:15:01');
    webhook.status = 200;
    webhook.alerts.length = 0;
    await pipeline.db.pool.query(
      "update etl.alerts set next_attempt_at = now(), raised_at = now() - interval '2 hours'",
    );
    expect(await deliverAlerts(context)).toBe(1);
    expect(webhook.alerts.map(({ message }) => message.replace(/[\d-]+T[\d:]+Z/, 'then'))).toEqual([
      `1 trading day is missing although due: Prices, bhavcopy_cm NSE ${DAY} (not requested yet); check that a scheduler and a worker are running; no worker was seen within the last minute (as of then)`,
    ]);
    expect(await deliverAlerts(context)).toBe(0);
  });

  test('is reported once by processes that look at the same moment', async () => {
    await Promise.all([1, 2, 3, 4].map(() => look('23:16:00')));
    expect(alertNames()).toEqual([`late_data GetBhavCopyCM NSE ${DAY}`]);
  });

  test('is not raised for what is loaded, refused, awaited, or was missing before there was anything', async () => {
    await cover('GetBhavCopyCM', DAY);
    await cover(
      'GetCircuitBreakers',
      DAY,
      'blocked',
      'the key may not use this operation: Function not enabled.',
    );
    // Lists nothing on most days, and may still come.
    await cover('GetSeriesChange', DAY, 'not_published');
    await look('23:45:00');
    expect(alertNames()).toEqual([]);
    // Nothing of this was ever loaded, and it was late before anybody looked.
    await pipeline.db.pool.query(
      "delete from etl.coverage where operation = 'GetCircuitBreakers' and state = 'blocked'",
    );
    await look('23:45:00', at(`${DAY}T23:44:30`));
    expect(alertNames()).toEqual([]);
    await look('23:45:00');
    expect(alertNames()).toEqual([`late_data GetCircuitBreakers NSE ${DAY}`]);
  });

  test('is reported after a standstill of any length', async () => {
    await cover('GetBhavCopyCM', '2025-08-01');
    await cover('GetCircuitBreakers', DAY);
    await look('23:45:00', at(`${DAY}T23:44:30`));
    const tradingDays = webhook.alerts.flatMap(({ facts }) => facts.sessions as { day: string }[]);
    expect(tradingDays.map(({ day }) => day).sort()).toEqual([
      '2025-09-05',
      '2025-09-08',
      '2025-09-09',
      '2025-09-10',
      '2025-09-11',
      DAY,
    ]);
  });

  test('is not raised for days that are no trading days', async () => {
    await cover('GetBhavCopyCM', DAY);
    clock.moveTo(at('2025-09-14T23:59:00'));
    await checkLateData(withSettings({}), at('2025-09-14T00:00:00'));
    expect(alertNames().join()).not.toContain('GetBhavCopyCM');
    clock.moveTo(at(`${MONDAY}T23:16:00`));
    await checkLateData(withSettings({}), at(`${MONDAY}T23:00:00`));
    expect(alertNames().at(-1)).toContain(`GetBhavCopyCM NSE ${MONDAY}`);
  });

  test('is looked for by every process that runs, from its start', async () => {
    clock.moveTo(at(`${DAY}T23:16:00`));
    await cover('GetBhavCopyCM', '2025-09-11');
    const watch = startAlertWatch(withSettings({}));
    await waitFor(async () => webhook.alerts.length > 0);
    await watch.stop();
    expect(alertNames()[0]).toContain(`GetBhavCopyCM NSE ${DAY}`);
  });
});

describe('a complete night', () => {
  const night = (day: string, state: 'running' | 'completed' | 'failed', tick = day) =>
    pipeline.db.pool.query(
      `insert into etl.runs (kind, state, requested_by, request, from_date, to_date, tick)
       values ('nightly', $2, 'test', '{}', $1, $1, $3)`,
      [day, state, tick],
    );
  /** What is reported of the newest night. */
  const reportNight = async () => {
    const settings = { EOD_ALERT_ON: ['night_completed' as const], EOD_HEARTBEAT_URL: monitor.url };
    const alerts = await alertsOfNight(withSettings(settings));
    return alerts.map(({ kind, subject, message }) => `${kind} ${subject}: ${message}`);
  };
  const complete = (day: string, text: string) =>
    ['heartbeat', 'night_completed'].map(
      (kind) => `${kind} ${day}: the night of ${day} is complete: ${text}`,
    );
  /** Everything of NSE that falls due each evening, but for the bhav copy. */
  const loadOthers = async () => {
    await cover('GetCircuitBreakers', DAY);
    await cover('GetSeriesChange', DAY, 'empty');
  };

  test('is one whose runs have ended and whose data is all there', async () => {
    expect(await reportNight()).toEqual([]);
    await night(DAY, 'completed');
    await night(DAY, 'running', 'another');
    await loadOthers();
    await cover('GetBhavCopyCM', DAY);
    expect(await reportNight()).toEqual([]);
    await pipeline.db.pool.query("update etl.runs set state = 'completed'");
    expect(await reportNight()).toEqual(complete(DAY, 'all 3 data sets that were due are there'));
    await pipeline.db.pool.query("delete from etl.coverage where operation = 'GetBhavCopyCM'");
    expect(await reportNight()).toEqual([]);
  });

  test('is not waited for where the key has no right to an operation', async () => {
    await night(DAY, 'completed');
    await loadOthers();
    await cover('GetBhavCopyCM', DAY, 'blocked', 'Access Denied. Key not found.');
    expect(await reportNight()).toEqual([]);
    await cover('GetBhavCopyCM', DAY, 'blocked', 'the key may not use this operation: Function not enabled.');
    expect(await reportNight()).toEqual(complete(DAY, 'all 2 data sets that were due are there'));
  });

  test('may be one in which nothing falls due, unless all of its runs failed', async () => {
    const SUNDAY = '2025-09-14';
    await night(SUNDAY, 'failed');
    expect(await reportNight()).toEqual([]);
    await night(SUNDAY, 'completed', 'another');
    expect(await reportNight()).toEqual(complete(SUNDAY, 'nothing was due'));
  });
});

describe('a heartbeat', () => {
  const beat = {
    kind: 'heartbeat',
    subject: DAY,
    message: `the night of ${DAY} is complete`,
    facts: {},
  } as const;

  test('is sent once a night, and once more later if the monitor fails', async () => {
    const context = withSettings({ EOD_HEARTBEAT_URL: monitor.url });
    monitor.status = 503;
    await raiseAlerts(context, [beat]);
    expect(monitor.requests).toEqual(['GET /ping/kiwi-0815']);
    const kept = await pipeline.db.pool.query('select kind, attempts, error from etl.alerts');
    expect(kept.rows).toEqual([{ kind: 'heartbeat', attempts: 1, error: 'it responded with 503' }]);
    monitor.status = 200;
    monitor.requests.length = 0;
    await pipeline.db.pool.query('update etl.alerts set next_attempt_at = now()');
    expect(await deliverAlerts(context)).toBe(1);
    await pipeline.db.pool.query("update etl.alerts set raised_at = now() - interval '20 hours'");
    await raiseAlerts(context, [beat]);
    expect(monitor.requests).toHaveLength(1);
    expect(webhook.alerts).toEqual([]);
  });

  test('goes through the proxy, as alerts do', async () => {
    const address = (url: string, host: string) => {
      const { origin, pathname } = new URL(url);
      return { [`${host}:80`]: origin, url: `http://${host}${pathname}` };
    };
    const [hook, ping] = [address(webhook.url, 'hooks.example'), address(monitor.url, 'monitor.example')];
    const proxy = await startProxy({ ...hook, ...ping });
    const context = withSettings({
      EOD_ALERT_WEBHOOK: hook.url,
      EOD_HEARTBEAT_URL: ping.url,
      HTTP_PROXY: proxy.url,
    });
    monitor.requests.length = 0;
    await raiseAlerts(context, [beat, { kind: 'gaps', subject: DAY, message: 'a gap', facts: {} }]);
    expect(monitor.requests).toEqual(['GET /ping/kiwi-0815']);
    expect(alertNames()).toEqual([`gaps ${DAY}`]);
    expect(proxy.requests.toSorted()).toEqual([`GET ${ping.url}`, `POST ${hook.url}`]);
  });

  test('follows a real night, with the news of it for those who want them', async () => {
    const NIGHT = at(`${DAY}T23:30:00`);
    clock.moveTo(NIGHT);
    monitor.requests.length = 0;
    const real = await openPipeline({
      sandbox: { instrumentsPerExchange: 20 },
      clock,
      settings: {
        EOD_EXCHANGES: 'NSE',
        EOD_INSTRUMENT_LIMIT: '2',
        EOD_ALERT_WEBHOOK: webhook.url,
        EOD_ALERT_ON: 'run_completed,night_completed',
        EOD_HEARTBEAT_URL: monitor.url,
      },
    });
    const report = await runToEnd(real, await nightlyRequest(real, { date: DAY }));
    await waitFor(() => webhook.alerts.length === 2 && monitor.requests.length === 1);
    expect(report.state).toBe('completed');
    expect(alertNames().toSorted()).toEqual([`night_completed ${DAY}`, `run_completed run ${report.runId}`]);
    const states = await real.db.pool.query('select market.state()::int as state');
    expect(webhook.alerts.find(({ kind }) => kind === 'night_completed')?.facts).toMatchObject({
      day: DAY,
      state: states.rows[0]?.state,
      changed: expect.arrayContaining([
        { table: 'market.bhavcopy_cm', exchange: 'NSE', from: expect.any(String), to: DAY },
        {
          table: 'market.circuit_breakers',
          exchange: 'NSE',
          from: expect.any(String),
          to: expect.any(String),
        },
      ]),
    });
    expect(webhook.alerts.find(({ kind }) => kind === 'run_completed')?.message).toMatch(
      /^run 1 \(nightly, .* to 2025-09-12\) completed: [\d,]+ records in \d+ requests/,
    );
  });
});

describe('a signature', () => {
  const alert = { kind: 'gaps', subject: 'M&M', message: 'M&M – ₹', facts: {} } as const;
  const SECRET = 'a long secret of ours';

  test('is what the verification in docs/monitoring.md accepts, until the body or the time is another', async () => {
    const page = readFileSync(new URL('../../../docs/monitoring.md', import.meta.url), 'utf8');
    const code = /```js\n(import \{ createHmac[\s\S]*?)```/.exec(page)?.[1] ?? '';
    const { isFromEod } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
    await raiseAlerts(withSettings({ EOD_ALERT_SECRET: SECRET }), [alert]);
    const { body, headers } = webhook.requests[0] ?? { body: '', headers: {} };
    const header = headers['x-eod-signature'];
    expect(header).toMatch(/^t=\d+,v1=[0-9a-f]{64}$/);
    expect(isFromEod(body, header, SECRET)).toBe(true);
    expect(isFromEod(body.replace('M&M', 'TCS'), header, SECRET)).toBe(false);
    expect(isFromEod(body, header, 'another long secret')).toBe(false);
    expect(isFromEod(body, undefined, SECRET)).toBe(false);
    expect(isFromEod(body, signBody(body, SECRET, 1_000), SECRET)).toBe(false);
  });

  test('is not there without a secret', async () => {
    await raiseAlerts(withSettings({}), [alert]);
    expect(webhook.requests[0]?.headers).not.toHaveProperty('x-eod-signature');
  });
});

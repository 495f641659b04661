import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { deliverAlerts, raiseAlerts } from '../../../src/jobs/alerts/send-alerts.ts';
import { openPipeline, type Pipeline } from '../../support/pipeline.ts';
import { startWebhook, type Webhook } from '../../support/webhook.ts';

describe('delivery', () => {
  let pipeline: Pipeline;
  let webhook: Webhook;
  const alert = {
    kind: 'gaps',
    subject: 'M&M',
    message: 'M&M <!channel>',
    facts: { symbol: 'M&M' },
  } as const;

  beforeAll(async () => {
    pipeline = await openPipeline({});
  });

  beforeEach(async () => {
    webhook = await startWebhook();
    await pipeline.db.pool.query('delete from etl.alerts');
  });

  const context = (address = webhook.url) => ({
    ...pipeline,
    config: { ...pipeline.config, EOD_ALERT_WEBHOOK: address },
  });
  const due = () => pipeline.db.pool.query('update etl.alerts set next_attempt_at = now()');
  const kept = async () =>
    (
      await pipeline.db.pool.query(
        'select attempts, error, delivered_at is not null as delivered from etl.alerts',
      )
    ).rows;

  test('is repeated later when the webhook fails, and logs no secret', async () => {
    webhook.status = 503;
    await raiseAlerts(context(), [alert]);
    expect(await kept()).toEqual([
      { attempts: 1, error: 'the webhook responded with 503', delivered: false },
    ]);
    webhook.status = 200;
    expect(await deliverAlerts(context())).toBe(0);
    await due();
    expect(await deliverAlerts(context())).toBe(1);
    expect(await kept()).toEqual([{ attempts: 2, error: null, delivered: true }]);
    expect(webhook.alerts).toHaveLength(2);
    expect(webhook.alerts[1]).toMatchObject({
      kind: 'gaps',
      subject: 'M&M',
      message: 'M&M <!channel>',
      facts: { symbol: 'M&M' },
      text: 'eod: M&amp;M &lt;!channel&gt;',
    });
  });

  test('to an address without a server is not an error', async () => {
    await raiseAlerts(context('http://127.0.0.1:9/kiwi-0815'), [alert]);
    const [row] = await kept();
    expect(row).toMatchObject({ attempts: 1, delivered: false });
    expect(row?.error).not.toContain('kiwi');
  });

  test('waits only a few seconds for a webhook that never responds', async () => {
    webhook.status = null;
    const began = performance.now();
    await raiseAlerts(context(), [alert]);
    expect(performance.now() - began).toBeLessThan(9_000);
    expect(await kept()).toMatchObject([{ attempts: 1, delivered: false }]);
  });

  test('happens once when several workers try it', async () => {
    await raiseAlerts(pipeline, [alert]);
    const sent = await Promise.all([1, 2, 3, 4].map(() => deliverAlerts(context())));
    expect(sent.toSorted()).toEqual([0, 0, 0, 1]);
    expect(webhook.alerts).toHaveLength(1);
  });

  test('the same alert raised by many at once is one, and a new one after the repeat interval', async () => {
    await Promise.all([1, 2, 3, 4].map(() => raiseAlerts(context(), [alert])));
    expect(webhook.alerts).toHaveLength(1);
    await pipeline.db.pool.query("update etl.alerts set raised_at = now() - interval '13 hours'");
    await raiseAlerts(context(), [alert]);
    expect(webhook.alerts).toHaveLength(2);
  });

  test('without a webhook alerts are kept, and those older than a day are not sent later', async () => {
    await raiseAlerts(pipeline, [alert]);
    await pipeline.db.pool.query("update etl.alerts set raised_at = now() - interval '25 hours'");
    expect(await deliverAlerts(context())).toBe(0);
    expect(await kept()).toEqual([{ attempts: 0, error: null, delivered: false }]);
  });
});

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { packageVersion } from '../../src/core/version.ts';
import { testDatabase } from '../support/database.ts';
import { type EodOptions, runEod } from '../support/eod.ts';
import { startServer } from '../support/http-server.ts';
import { startProxy } from '../support/proxy.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startWebhook } from '../support/webhook.ts';

const KEY = 'kiwi 0815/secret?';
const DAY = '2025-09-12';
const clock = { now: () => Date.parse(`${DAY}T22:00:00+05:30`) };

interface Value {
  readonly stringValue?: string;
  readonly intValue?: number | string;
}

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly attributes: readonly { readonly key: string; readonly value: Value }[];
  readonly links: readonly { readonly spanId: string }[];
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
}

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: Pick<Span, 'attributes'>;
    readonly scopeSpans: readonly {
      readonly scope: { readonly name: string };
      readonly spans: readonly Span[];
    }[];
  }[];
}

/** A receiver of OTLP over HTTP. */
async function startReceiver() {
  const bodies: string[] = [];
  const url = await startServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (request.url === '/v1/traces') bodies.push(Buffer.concat(chunks).toString());
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  const exports = () => bodies.flatMap((body) => (JSON.parse(body) as Export).resourceSpans);
  return {
    url,
    bodies,
    exports,
    spans: () => exports().flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)),
  };
}

/** Prints at its end which modules of OpenTelemetry a process has loaded. */
const PROBE = `
import { createRequire, Module } from 'node:module';
process.on('exit', () => {
  const loaded = Object.keys(Module._cache).filter((file) => /@opentelemetry|bullmq-otel/.test(file));
  process.stderr.write('LOADED ' + loaded.length + '\\n');
});
`;

/** Backfills a day of these operations in a process of its own: OpenTelemetry changes modules for all that run in it. */
const backfill = (
  day: string,
  { operations, flags = [], ...options }: EodOptions & { operations: string[]; flags?: string[] },
) => runEod(['backfill', ...operations, '--from', day, '--to', day, ...flags], options);

test('a run is a trace from the run to the steps of its windows, without the key; without a receiver nothing of it is loaded', async () => {
  const cwd = temporaryFolder();
  const probe = join(cwd, 'probe.mjs');
  writeFileSync(probe, PROBE);
  const sandbox = await openSandbox({
    clock,
    accessKey: KEY,
    instrumentsPerExchange: 20,
    behaviour: { disabledOperations: ['GetCircuitBreakers'] },
  });
  const { url } = await testDatabase();
  const env = {
    EOD_BASE_URL: sandbox.url,
    EOD_ACCESS_KEY: KEY,
    DATABASE_URL: url,
    EOD_ALERT_WEBHOOK: `${sandbox.url}/services/kiwi-hook`,
    NODE_OPTIONS: `--import ${pathToFileURL(probe)}`,
  };
  const requested = {
    operations: ['GetBhavCopyCM', 'GetCircuitBreakers'],
    flags: ['--exchange', 'NSE'],
    cwd,
    env,
  };
  const plain = await backfill('2025-09-11', requested);
  expect(plain.stderr).toMatch(/^LOADED 0$/m);

  const receiver = await startReceiver();
  // From the file, which OpenTelemetry does not read automatically.
  writeFileSync(join(cwd, '.env'), `OTEL_EXPORTER_OTLP_ENDPOINT=${receiver.url}\n`);
  const traced = await backfill(DAY, { ...requested, env: { ...env, EOD_LOG_LEVEL: 'info' } });
  expect(traced.stderr).toMatch(/^LOADED [1-9]\d+$/m);

  const spans = receiver.spans();
  const named = (name: string) => spans.filter((span) => span.name === name);
  const factOf = ({ attributes }: Pick<Span, 'attributes'>, key: string) => {
    const value = attributes.find((one) => one.key === key)?.value;
    return value?.stringValue ?? (value?.intValue === undefined ? undefined : Number(value.intValue));
  };
  const parentOf = (span: Span | undefined) => spans.find(({ spanId }) => spanId === span?.parentSpanId);

  const [run, ...otherRuns] = named('eod.run');
  expect(otherRuns).toEqual([]);
  expect(factOf(run as Span, 'eod.state')).toBe('failed');
  expect(run?.parentSpanId ?? '').toBe('');
  const windows = named('eod.window');
  expect(windows.map((span) => factOf(span, 'eod.operation')).toSorted()).toEqual([
    'GetBhavCopyCM',
    'GetCircuitBreakers',
  ]);
  expect(new Set(windows.map((span) => span.parentSpanId))).toEqual(new Set([run?.spanId]));
  expect(new Set(windows.map((span) => span.traceId))).toEqual(new Set([run?.traceId]));
  const loaded = windows.find((span) => factOf(span, 'eod.operation') === 'GetBhavCopyCM');
  expect(factOf(loaded as Span, 'eod.outcome')).toBe('loaded');
  expect(factOf(loaded as Span, 'eod.fetched')).toBeGreaterThan(0);
  const steps = spans.filter((span) => span.parentSpanId === loaded?.spanId && span.name.startsWith('eod.'));
  expect([...new Set(steps.map(({ name }) => name))].toSorted()).toEqual([
    'eod.claim',
    'eod.fetch',
    'eod.load',
    'eod.read',
  ]);

  // Of BullMQ: the jobs were added and processed in the trace of the run, and the window says which job it was.
  const added = spans.filter(({ name }) => name.startsWith('addBulk'));
  expect(new Set(added.map((span) => parentOf(span)?.name))).toEqual(new Set(['eod.enqueue']));
  const jobs = spans.filter(({ name }) => name.startsWith('process'));
  expect(jobs.length).toBeGreaterThan(0);
  expect(new Set([...added, ...jobs].map((span) => span.traceId))).toEqual(new Set([run?.traceId]));
  expect(jobs.map(({ spanId }) => spanId)).toContain(loaded?.links[0]?.spanId);
  // Nothing hangs loose: the looks for the next job are no traces.
  const roots = spans.filter((span) => (span.parentSpanId ?? '') === '');
  expect(roots.map(({ name }) => name).filter((name) => !/^(eod\.|addBulk|process)/.test(name))).toEqual([]);

  const resource = receiver.exports()[0]?.resource;
  const ofResource = (key: string) => factOf(resource as Pick<Span, 'attributes'>, key);
  expect([ofResource('service.namespace'), ofResource('service.name')]).toEqual(['eod', 'eod-pipeline']);
  expect(ofResource('service.version')).toBe(packageVersion());
  expect(ofResource('service.instance.id')).toMatch(/^[0-9a-f-]{36}$/);
  // The log has the trace of each window, and the span that the line was written in.
  const logged = traced.stderr
    .split('\n')
    .filter((line) => line.startsWith('{') && line.includes('"windowId"'))
    .map((line) => JSON.parse(line) as { trace_id?: string; span_id?: string });
  expect(logged.length).toBeGreaterThan(1);
  for (const { trace_id, span_id } of logged) {
    expect(trace_id).toBe(run?.traceId);
    expect(spans.map(({ spanId }) => spanId)).toContain(span_id);
  }
  for (const body of receiver.bodies) {
    for (const secret of ['kiwi', encodeURIComponent(KEY), 'kiwi-hook']) expect(body).not.toContain(secret);
  }
  // The end of the command waited for the last spans.
  expect(BigInt(run?.endTimeUnixNano ?? 0)).toBeGreaterThan(BigInt(run?.startTimeUnixNano ?? 0));
});

test('behind a proxy calls and alerts go through it, and traces straight to their receiver', async () => {
  const sandbox = await openSandbox({ clock, accessKey: KEY, instrumentsPerExchange: 5 });
  const [receiver, webhook, { url }] = [await startReceiver(), await startWebhook(), await testDatabase()];
  const proxy = await startProxy(
    {
      'service.example:80': sandbox.url,
      'hooks.example:80': new URL(webhook.url).origin,
    },
    { credentials: 'eod:kiwi-proxy' },
  );
  const { code, stderr } = await backfill(DAY, {
    operations: ['GetTotalTradeHighlights'],
    cwd: temporaryFolder(),
    env: {
      EOD_BASE_URL: 'http://service.example',
      EOD_ACCESS_KEY: KEY,
      DATABASE_URL: url,
      EOD_ALERT_WEBHOOK: 'http://hooks.example/services/kiwi-hook',
      EOD_ALERT_ON: 'run_completed',
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      http_proxy: proxy.url.replace('//', '//eod:kiwi-proxy@'),
    },
  });
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(webhook.heard.map(({ kind }) => kind)).toEqual(['run_completed']);
  expect(receiver.spans().map(({ name }) => name)).toContain('eod.run');
  const hosts = proxy.requested.map((one) => new URL(one.split(' ')[1] ?? '').hostname);
  expect([...new Set(hosts)].toSorted()).toEqual(['hooks.example', 'service.example']);
  for (const body of receiver.bodies) expect(body).not.toContain('kiwi');
});

test.each([
  // It is requested several times, for longer than the end of the command waits.
  ['is unreachable', async () => 'http://127.0.0.1:9', [0, 1]],
  ['refuses them', () => startServer((_, response) => response.writeHead(400).end()), [1]],
])('a command ends as it would without where the receiver %s', async (_, receiver, lines) => {
  const { url } = await testDatabase();
  const env = {
    EOD_BASE_URL: 'http://127.0.0.1:9',
    EOD_ACCESS_KEY: KEY,
    DATABASE_URL: url,
    OTEL_EXPORTER_OTLP_ENDPOINT: await receiver(),
    // One request for each span.
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '1',
  };
  const flags = ['--detach', '--json'];
  const options = { operations: ['GetBhavCopyCM'], flags, cwd: temporaryFolder(), env };
  const { code, stdout, stderr } = await backfill(DAY, options);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ runId: 1 });
  expect(lines).toContain(stderr.split('traces could not be sent').length - 1);
});

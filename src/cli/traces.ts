import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import type { Channel } from 'node:diagnostics_channel';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Attributes,
  type Context,
  type ContextManager,
  context as contexts,
  propagation,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { ExportResultCode } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg';
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici';
import { convertLegacyHttpOptions } from '@opentelemetry/otlp-exporter-base/node-http';
import { JsonTraceSerializer } from '@opentelemetry/otlp-transformer';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  NodeTracerProvider,
  RandomIdGenerator,
  type ReadableSpan,
  type Sampler,
  SamplingDecision,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-node';
import {
  ATTR_SERVICE_NAME,
  ATTR_SERVICE_VERSION,
  ATTR_URL_FULL,
  ATTR_URL_PATH,
  ATTR_URL_QUERY,
} from '@opentelemetry/semantic-conventions';
import type { Telemetry } from 'bullmq';
import { BullMQOtel } from 'bullmq-otel';
import pg from 'pg';
import { request } from 'undici';
import type { Config } from '../core/config.ts';
import { redactor, SECRET_SETTINGS } from '../core/environment.ts';
import { runEnded } from '../core/events.ts';
import type { Logger } from '../core/log.ts';
import { createDispatcher } from '../core/proxy.ts';
import { type Step, stepChannel } from '../core/steps.ts';
import { packageVersion } from '../core/version.ts';

/** The traces of this process. */
interface Traces {
  /** For BullMQ. */
  readonly telemetry: Telemetry;
  /** Sends the remaining spans, for STOP_WITHIN_MS at most, and stops tracing. */
  stop(): Promise<void>;
}

/** How long the end of a command waits for the receiver of traces. */
const STOP_WITHIN_MS = 2_000;

/** Longer texts, such as SQL statements, are cut. */
const LONGEST_ATTRIBUTE = 2_000;

/** A receiver that cannot be reached is logged at most this often. */
const LOG_FAILURE_EVERY_MS = 60_000;

/**
 * Sends a trace of each run to the receiver that the OpenTelemetry variables name. It has a span for each window, and
 * in it spans for claiming, fetching, reading and loading, with their calls and statements. Secret settings are removed
 * from all of them.
 *
 * @param environment with the settings of `.env`, which OpenTelemetry does not read itself.
 */
export function startTraces(
  config: Config,
  environment: Readonly<Record<string, string>>,
  log: Logger,
): Traces {
  for (const [name, value] of Object.entries(environment)) {
    if (name.startsWith('OTEL_')) process.env[name] ??= value;
  }
  const ids = new NamedIds();
  const exporter = redactingExporter(createExporter(config), config, log);
  const provider = new NodeTracerProvider({
    resource: defaultResource()
      .merge(
        resourceFromAttributes({
          [ATTR_SERVICE_NAME]: 'eod-pipeline',
          [ATTR_SERVICE_VERSION]: packageVersion(),
          'host.name': hostname(),
          'process.pid': process.pid,
        }),
      )
      .merge(detectResources({ detectors: [envDetector] })),
    idGenerator: ids,
    sampler: runSampler(environment),
    spanLimits: { attributeValueLengthLimit: LONGEST_ATTRIBUTE },
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  const manager = new StepContexts();
  provider.register({ contextManager: manager });
  const stopSteps = traceSteps(manager, provider, ids);
  const stopLibraries = traceLibraries(config);
  return {
    telemetry: new BullMQOtel({ tracerName: 'bullmq', version: packageVersion() }),
    async stop() {
      stopSteps();
      stopLibraries();
      const late = new AbortController();
      const timeout = sleep(STOP_WITHIN_MS, undefined, { signal: late.signal }).catch(() => undefined);
      await Promise.race([provider.shutdown().catch(() => undefined), timeout]);
      late.abort();
      trace.disable();
      contexts.disable();
      propagation.disable();
    },
  };
}

/**
 * Keeps the current span in an AsyncLocalStorage, so that a tracing channel of Node can set it for what runs within a
 * step.
 */
class StepContexts implements ContextManager {
  readonly storage = new AsyncLocalStorage<Context>();

  active(): Context {
    return this.storage.getStore() ?? ROOT_CONTEXT;
  }

  with<Args extends unknown[], Fn extends (...args: Args) => ReturnType<Fn>>(
    context: Context,
    work: Fn,
    thisArg?: ThisParameterType<Fn>,
    ...args: Args
  ): ReturnType<Fn> {
    return this.storage.run(context, () => work.apply(thisArg, args));
  }

  bind<T>(context: Context, target: T): T {
    if (typeof target !== 'function') return target;
    const { storage } = this;
    const bound = function (this: unknown, ...args: unknown[]): unknown {
      return storage.run(context, () => Reflect.apply(target, this, args));
    };
    return bound as T;
  }

  enable(): this {
    return this;
  }

  disable(): this {
    this.storage.disable();
    return this;
  }
}

/** Random ids, except for a span that is started under given ids. */
class NamedIds extends RandomIdGenerator {
  #next: SpanContext | null = null;

  /** Starts a span under these ids. */
  as<T>(wanted: SpanContext, start: () => T): T {
    this.#next = wanted;
    try {
      return start();
    } finally {
      this.#next = null;
    }
  }

  override generateTraceId = (): string => this.#next?.traceId ?? newTraceId();
  override generateSpanId = (): string => this.#next?.spanId ?? newSpanId();
}

const randomIds = new RandomIdGenerator();
const newTraceId = () => randomIds.generateTraceId();
const newSpanId = () => randomIds.generateSpanId();

/**
 * The ids of a run's span, derived from the run so that they are the same in every process. Windows become its children
 * at once; the span itself is sent by the process that ends the run.
 */
function spanOfRun(database: unknown, run: unknown): SpanContext {
  const hash = createHash('sha256').update(`${database} ${run}`).digest('hex');
  return {
    traceId: hash.slice(0, 32),
    spanId: hash.slice(32, 48),
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
  };
}

const PREFIX = 'eod.';

/** Spans that may begin a trace. BullMQ's polling for the next job may not: it happens every few seconds. */
const MAY_BEGIN_TRACE = /^(eod\.|(add|addBulk|process) )/;

/**
 * Decides which traces are sent, as OTEL_TRACES_SAMPLER says. It decides by the id of the trace, so that all processes
 * agree about a run.
 */
function runSampler({
  OTEL_TRACES_SAMPLER: name = '',
  OTEL_TRACES_SAMPLER_ARG: ratio,
}: Readonly<Record<string, string>>): Sampler {
  const ofTraces = name.endsWith('always_off')
    ? new AlwaysOffSampler()
    : name.endsWith('traceidratio')
      ? new TraceIdRatioBasedSampler(Number(ratio ?? 1))
      : new AlwaysOnSampler();
  return {
    shouldSample(parent, traceId, spanName) {
      const above = trace.getSpanContext(parent);
      if (above === undefined || above.isRemote === true) {
        if (above === undefined && !MAY_BEGIN_TRACE.test(spanName))
          return { decision: SamplingDecision.NOT_RECORD };
        return ofTraces.shouldSample(parent, traceId);
      }
      const isSampled = (above.traceFlags & TraceFlags.SAMPLED) !== 0;
      return { decision: isSampled ? SamplingDecision.RECORD_AND_SAMPLED : SamplingDecision.NOT_RECORD };
    },
    toString: () => `runs(${ofTraces})`,
  };
}

/** Creates spans for steps and for runs that end. @returns a function that stops this. */
function traceSteps(manager: StepContexts, provider: NodeTracerProvider, ids: NamedIds): () => void {
  const tracer = provider.getTracer('eod-pipeline', packageVersion());
  const spans = new WeakMap<Step, Span>();

  const begin = (step: Step): Context => {
    const active = manager.active();
    const { database, run } = step.facts;
    const ofRun = run !== undefined && (step.name === 'window' || step.name === 'enqueue');
    // An import or a replay has a span for the run only.
    if (!ofRun && step.name !== 'plan' && trace.getSpan(active) === undefined) return active;
    const parent = ofRun ? trace.setSpanContext(active, spanOfRun(database, run)) : active;
    const job = ofRun ? trace.getSpanContext(active) : undefined;
    const links = job === undefined ? [] : [{ context: job }];
    const span = tracer.startSpan(`${PREFIX}${step.name}`, { links, attributes: named(step.facts) }, parent);
    spans.set(step, span);
    return trace.setSpan(parent, span);
  };
  const end = (step: Step) => {
    const span = spans.get(step);
    if (span === undefined) return;
    span.setAttributes(named(step.facts));
    // A window is failed only if that was its outcome: it also throws to make BullMQ try again.
    if (step.error !== undefined && step.name !== 'window') {
      span.setStatus({ code: SpanStatusCode.ERROR, message: messageOfError(step.error) });
    } else if (step.facts.outcome === 'failed' || step.facts.outcome === 'blocked') {
      span.setStatus({ code: SpanStatusCode.ERROR, message: messageOfError(step.error) });
    }
    span.end();
  };
  // The types expect the step itself in the store; what is stored is a context.
  const started = stepChannel.start as unknown as Channel<Context, Step>;
  started.bindStore(manager.storage, begin);
  const onEnd = (step: unknown) => end(step as Step);
  stepChannel.asyncEnd.subscribe(onEnd);

  const stopRuns = runEnded.subscribe(({ database, run, startedAt, finishedAt, ...facts }) => {
    const attributes = named({ database, run, ...facts });
    const span = ids.as(spanOfRun(database, run), () =>
      tracer.startSpan(`${PREFIX}run`, { root: true, startTime: new Date(startedAt), attributes }),
    );
    if (facts.state === 'failed') span.setStatus({ code: SpanStatusCode.ERROR });
    span.end(new Date(finishedAt));
  });
  return () => {
    started.unbindStore(manager.storage);
    stepChannel.asyncEnd.unsubscribe(onEnd);
    stopRuns();
  };
}

const named = (facts: Readonly<Record<string, string | number | boolean>>): Attributes =>
  Object.fromEntries(Object.entries(facts).map(([name, value]) => [`${PREFIX}${name}`, value]));

const messageOfError = (error: unknown) => (error instanceof Error ? error.message : String(error ?? ''));

/** Creates spans for HTTP calls and SQL statements within other spans. @returns a function that stops this. */
function traceLibraries(config: Config): () => void {
  const { EOD_BASE_URL } = config;
  const source = EOD_BASE_URL === undefined ? null : new URL(EOD_BASE_URL).origin;
  const undici = new UndiciInstrumentation({
    requireParentforSpans: true,
    // The access key is in the query, and addresses of webhooks and monitors have a secret in their path.
    startSpanHook({ origin, path }) {
      const shown = origin === source ? new URL(path, origin).pathname : '/…';
      return { [ATTR_URL_FULL]: `${origin}${shown}`, [ATTR_URL_PATH]: shown, [ATTR_URL_QUERY]: '' };
    },
  });
  const postgres = new PgInstrumentation({ requireParentSpan: true, enhancedDatabaseReporting: false });
  // pg is loaded already, so the instrumentation cannot hook its import: it is patched directly.
  const clients = postgres.getModuleDefinitions().filter(({ name }) => name === 'pg');
  for (const { patch } of clients) patch?.(pg);
  return () => {
    undici.disable();
    for (const { unpatch } of clients) unpatch?.(pg);
    postgres.disable();
  };
}

/** Sends spans to the receiver that the OpenTelemetry variables name. */
function createExporter(config: Config): SpanExporter {
  if (config.HTTPS_PROXY === undefined && config.HTTP_PROXY === undefined) return new OTLPTraceExporter();
  // The library's own exporter knows no proxies.
  const json = { 'content-type': 'application/json' };
  const {
    url,
    headers,
    timeoutMillis: timeoutMs,
  } = convertLegacyHttpOptions({}, 'TRACES', 'v1/traces', json);
  const dispatcher = createDispatcher(config, { timeoutMs });
  const send = async (spans: ReadableSpan[]) => {
    const signal = AbortSignal.timeout(timeoutMs);
    const body = JsonTraceSerializer.serializeRequest(spans) ?? null;
    const answer = await request(url, { method: 'POST', headers: await headers(), body, dispatcher, signal });
    await answer.body.dump();
    if (answer.statusCode > 299) throw new Error(`the receiver of traces answered ${answer.statusCode}`);
  };
  return {
    export(spans, done) {
      send(spans).then(
        () => done({ code: ExportResultCode.SUCCESS }),
        (error: Error) => done({ code: ExportResultCode.FAILED, error }),
      );
    },
    shutdown: () => dispatcher.close(),
  };
}

/** Removes secrets from spans before they are sent, and logs when the receiver cannot be reached. */
function redactingExporter(exporter: SpanExporter, config: Config, log: Logger): SpanExporter {
  const values = SECRET_SETTINGS.map((name) => config[name]);
  const passwords = values.map((value) =>
    value !== undefined && URL.canParse(value) ? decodeURIComponent(new URL(value).password) : undefined,
  );
  const redact = redactor([...values, ...passwords]);
  const clean = (attributes: Attributes | undefined) => {
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (typeof value === 'string' && attributes !== undefined) attributes[name] = redact(value);
    }
  };
  let loggedAt = Number.NEGATIVE_INFINITY;
  return {
    export(spans, done) {
      for (const span of spans as readonly { -readonly [Name in keyof ReadableSpan]: ReadableSpan[Name] }[]) {
        clean(span.attributes);
        for (const event of span.events) clean(event.attributes);
        for (const link of span.links) clean(link.attributes);
        if (span.status.message !== undefined) span.status.message = redact(span.status.message);
      }
      exporter.export(spans, (result) => {
        if (result.error !== undefined && performance.now() - loggedAt > LOG_FAILURE_EVERY_MS) {
          loggedAt = performance.now();
          log.warn({ err: result.error }, 'traces could not be sent');
        }
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}

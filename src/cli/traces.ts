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
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg';
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici';
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
import type { Config } from '../core/config.ts';
import { redactor, SECRET_SETTINGS } from '../core/environment.ts';
import { runEnded } from '../core/events.ts';
import type { Logger } from '../core/log.ts';
import { type Step, stepChannel } from '../core/steps.ts';
import { packageVersion } from '../core/version.ts';

/** Traces that are sent while a command works. */
interface Traces {
  /** For BullMQ. */
  readonly telemetry: Telemetry;
  /** Sends what is left, for STOP_WITHIN_MS at most, and ends it. */
  stop(): Promise<void>;
}

/** The end of a command waits no longer than this for a receiver of traces. */
const STOP_WITHIN_MS = 2_000;

/** A longer text, such as a statement of our own, is cut. */
const LONGEST_ATTRIBUTE = 2_000;

/** A receiver that is away is one line of the log in so long. */
const COMPLAIN_EVERY_MS = 60_000;

/**
 * Sends a trace of each run to the receiver that the environment of OpenTelemetry names: its windows, and of each what
 * was claimed, fetched, read and loaded, with the calls and statements below. No secret setting is in any of it.
 *
 * @param environment with the settings of the file `.env`, which OpenTelemetry does not read itself.
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
  const exporter = redactingExporter(new OTLPTraceExporter(), config, log);
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
      const patience = sleep(STOP_WITHIN_MS, undefined, { signal: late.signal }).catch(() => undefined);
      await Promise.race([provider.shutdown().catch(() => undefined), patience]);
      late.abort();
      trace.disable();
      contexts.disable();
      propagation.disable();
    },
  };
}

/** The context of spans, kept where a channel of Node can set it for what runs within a step. */
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

/** Ids by chance, but for the span that somebody asks the next one to be. */
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
 * The span of a run, the same in every process that works on it: whoever ends the run sends it, and windows are its
 * children before that.
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

const OURS = 'eod.';

/** BullMQ's spans that may begin a trace: its looks for the next job, each few seconds, may not. */
const MAY_BEGIN = /^(eod\.|(add|addBulk|process) )/;

/**
 * Which traces are sent: as OTEL_TRACES_SAMPLER says, by the id of the trace, so that all processes agree about a run.
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
        if (above === undefined && !MAY_BEGIN.test(spanName))
          return { decision: SamplingDecision.NOT_RECORD };
        return ofTraces.shouldSample(parent, traceId);
      }
      const isSampled = (above.traceFlags & TraceFlags.SAMPLED) !== 0;
      return { decision: isSampled ? SamplingDecision.RECORD_AND_SAMPLED : SamplingDecision.NOT_RECORD };
    },
    toString: () => `runs(${ofTraces})`,
  };
}

/** Makes spans of steps and of runs that end. @returns a function that ends this. */
function traceSteps(manager: StepContexts, provider: NodeTracerProvider, ids: NamedIds): () => void {
  const tracer = provider.getTracer('eod-pipeline', packageVersion());
  const spans = new WeakMap<Step, Span>();

  const begin = (step: Step): Context => {
    const active = manager.active();
    const { database, run } = step.facts;
    const ofRun = run !== undefined && (step.name === 'window' || step.name === 'enqueue');
    // Of an import or a replay there is a span of the run alone.
    if (!ofRun && step.name !== 'plan' && trace.getSpan(active) === undefined) return active;
    const parent = ofRun ? trace.setSpanContext(active, spanOfRun(database, run)) : active;
    const job = ofRun ? trace.getSpanContext(active) : undefined;
    const links = job === undefined ? [] : [{ context: job }];
    const span = tracer.startSpan(`${OURS}${step.name}`, { links, attributes: named(step.facts) }, parent);
    spans.set(step, span);
    return trace.setSpan(parent, span);
  };
  const end = (step: Step) => {
    const span = spans.get(step);
    if (span === undefined) return;
    span.setAttributes(named(step.facts));
    // What a window or a step met is told by what became of the window; BullMQ is told by errors too.
    if (step.error !== undefined && step.name !== 'window') {
      span.setStatus({ code: SpanStatusCode.ERROR, message: messageOfError(step.error) });
    } else if (step.facts.outcome === 'failed' || step.facts.outcome === 'blocked') {
      span.setStatus({ code: SpanStatusCode.ERROR, message: messageOfError(step.error) });
    }
    span.end();
  };
  // What is stored while a step runs is a context, not the step itself as the types have it.
  const started = stepChannel.start as unknown as Channel<Context, Step>;
  started.bindStore(manager.storage, begin);
  const onEnd = (step: unknown) => end(step as Step);
  stepChannel.asyncEnd.subscribe(onEnd);

  const stopRuns = runEnded.subscribe(({ database, run, startedAt, finishedAt, ...facts }) => {
    const attributes = named({ database, run, ...facts });
    const span = ids.as(spanOfRun(database, run), () =>
      tracer.startSpan(`${OURS}run`, { root: true, startTime: new Date(startedAt), attributes }),
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
  Object.fromEntries(Object.entries(facts).map(([name, value]) => [`${OURS}${name}`, value]));

const messageOfError = (error: unknown) => (error instanceof Error ? error.message : String(error ?? ''));

/** Makes spans of calls and statements within the others. @returns a function that ends this. */
function traceLibraries(config: Config): () => void {
  const { EOD_BASE_URL } = config;
  const source = EOD_BASE_URL === undefined ? null : new URL(EOD_BASE_URL).origin;
  const undici = new UndiciInstrumentation({
    requireParentforSpans: true,
    // The key travels in the query, and addresses of webhooks and monitors have a secret in their path.
    startSpanHook({ origin, path }) {
      const shown = origin === source ? new URL(path, origin).pathname : '/…';
      return { [ATTR_URL_FULL]: `${origin}${shown}`, [ATTR_URL_PATH]: shown, [ATTR_URL_QUERY]: '' };
    },
  });
  const postgres = new PgInstrumentation({ requireParentSpan: true, enhancedDatabaseReporting: false });
  // The client is loaded by now, as a module that nothing could have hooked: it is patched itself.
  const clients = postgres.getModuleDefinitions().filter(({ name }) => name === 'pg');
  for (const { patch } of clients) patch?.(pg);
  return () => {
    undici.disable();
    for (const { unpatch } of clients) unpatch?.(pg);
    postgres.disable();
  };
}

/** Takes every secret out of a span before it is sent, wherever it may have got in; a receiver that is away is logged. */
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
  let complainedAt = Number.NEGATIVE_INFINITY;
  return {
    export(spans, done) {
      for (const span of spans as readonly { -readonly [Name in keyof ReadableSpan]: ReadableSpan[Name] }[]) {
        clean(span.attributes);
        for (const event of span.events) clean(event.attributes);
        for (const link of span.links) clean(link.attributes);
        if (span.status.message !== undefined) span.status.message = redact(span.status.message);
      }
      exporter.export(spans, (result) => {
        if (result.error !== undefined && performance.now() - complainedAt > COMPLAIN_EVERY_MS) {
          complainedAt = performance.now();
          log.warn({ err: result.error }, 'traces could not be sent');
        }
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}

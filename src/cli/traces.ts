import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import {
  type Attributes,
  context as contexts,
  type SpanContext,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
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
  ParentBasedSampler,
  RandomIdGenerator,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-node';
import type { Telemetry } from 'bullmq';
import { BullMQOtel } from 'bullmq-otel';
import type { Config } from '../core/config.ts';
import { settingsRedactor } from '../core/environment.ts';
import { messageOf } from '../core/errors.ts';
import { runEnded } from '../core/events.ts';
import { addTraceIds, type Logger } from '../core/log.ts';
import { sha256 } from '../core/sha256.ts';
import { runStepsWith } from '../core/steps.ts';
import { packageVersion } from '../core/version.ts';
import { endsWithin } from '../core/waits.ts';

/** How long the end of a command waits for the receiver of traces. */
const STOP_WITHIN_MS = 2_000;

/** Longer texts, such as SQL statements, are cut. */
const LONGEST_ATTRIBUTE = 2_000;

/** A receiver that cannot be reached is logged at most this often. */
const LOG_FAILURE_EVERY_MS = 60_000;

/**
 * Sends a trace of each run to the receiver that the OpenTelemetry variables name. It has a span for each window, and
 * in it spans for claiming, fetching, reading and loading. Secret settings are removed from all of them.
 *
 * @param environment with the settings of `.env`, which OpenTelemetry does not read itself.
 */
export function startTraces(
  config: Config,
  environment: Readonly<Record<string, string>>,
  log: Logger,
): { readonly telemetry: Telemetry; readonly stop: () => Promise<unknown> } {
  for (const [name, value] of Object.entries(environment)) {
    if (name.startsWith('OTEL_')) process.env[name] ??= value;
  }
  const exporter = guarded(new OTLPTraceExporter(), config, log);
  const provider = new NodeTracerProvider({
    resource: defaultResource()
      .merge(
        resourceFromAttributes({
          'service.namespace': 'eod',
          'service.name': 'eod-pipeline',
          'service.version': packageVersion(),
          'service.instance.id': randomUUID(),
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
  provider.register();
  traceSteps(provider);
  addTraceIds(() => {
    const span = trace.getSpanContext(contexts.active());
    return span && { trace_id: span.traceId, span_id: span.spanId };
  });
  return {
    telemetry: new BullMQOtel({ tracerName: 'bullmq', version: packageVersion() }),
    // Spans that end later are dropped, and nothing else needs to be undone in a process that is about to exit.
    stop: () =>
      endsWithin(
        provider.shutdown().catch(() => undefined),
        STOP_WITHIN_MS,
      ),
  };
}

const random = new RandomIdGenerator();

/** Random ids, except for the next span if `next` has others. */
const ids = {
  next: null as SpanContext | null,
  generateTraceId: () => ids.next?.traceId ?? random.generateTraceId(),
  generateSpanId: () => ids.next?.spanId ?? random.generateSpanId(),
};

/**
 * The ids of a run's span, derived from the run so that they are the same in every process. Windows become its children
 * at once; the span itself is sent by the process that ends the run.
 */
function spanOfRun(database: unknown, run: unknown): SpanContext {
  const hash = sha256(`${database} ${run}`);
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
  const none = new AlwaysOffSampler();
  const root: Sampler = {
    shouldSample: (parent, traceId, spanName) =>
      (MAY_BEGIN_TRACE.test(spanName) ? ofTraces : none).shouldSample(parent, traceId),
  };
  return new ParentBasedSampler({ root, remoteParentSampled: ofTraces, remoteParentNotSampled: ofTraces });
}

/** Creates spans for steps and for runs that end. */
function traceSteps(provider: NodeTracerProvider): void {
  const tracer = provider.getTracer('eod-pipeline', packageVersion());
  runStepsWith(async ({ name, facts }, work) => {
    const active = contexts.active();
    const { database, run } = facts;
    const ofRun = run !== undefined && (name === 'window' || name === 'enqueue');
    // An import or a replay has a span for the run only.
    if (!ofRun && name !== 'plan' && trace.getSpan(active) === undefined) return work();
    const parent = ofRun ? trace.setSpanContext(active, spanOfRun(database, run)) : active;
    const job = ofRun ? trace.getSpanContext(active) : undefined;
    const links = job === undefined ? [] : [{ context: job }];
    const options = { links, attributes: named(facts) };
    return tracer.startActiveSpan(`${PREFIX}${name}`, options, parent, async (span) => {
      let thrown: unknown;
      try {
        return await work();
      } catch (error) {
        thrown = error;
        throw error;
      } finally {
        const { outcome } = facts;
        // A window is failed only if that was its outcome: it also throws to make BullMQ try again.
        if (name === 'window' ? outcome === 'failed' || outcome === 'blocked' : thrown !== undefined) {
          span.setStatus({ code: SpanStatusCode.ERROR, message: messageOf(thrown ?? '') });
        }
        span.setAttributes(named(facts)).end();
      }
    });
  });
  runEnded.subscribe(({ database, run, startedAt, finishedAt, ...facts }) => {
    const attributes = named({ database, run, ...facts });
    ids.next = spanOfRun(database, run);
    const span = tracer.startSpan(`${PREFIX}run`, { root: true, startTime: new Date(startedAt), attributes });
    ids.next = null;
    if (facts.state === 'failed') span.setStatus({ code: SpanStatusCode.ERROR });
    span.end(new Date(finishedAt));
  });
}

const named = (facts: Readonly<Record<string, string | number | boolean>>): Attributes =>
  Object.fromEntries(Object.entries(facts).map(([name, value]) => [`${PREFIX}${name}`, value]));

/** Makes an exporter remove secrets from spans before it sends them, and log when the receiver cannot be reached. */
function guarded(exporter: SpanExporter, config: Config, log: Logger): SpanExporter {
  const redact = settingsRedactor(config);
  const clean = (attributes: Attributes = {}) => {
    for (const [name, value] of Object.entries(attributes)) {
      if (typeof value === 'string') attributes[name] = redact(value);
    }
  };
  const send = exporter.export.bind(exporter);
  let loggedAt = Number.NEGATIVE_INFINITY;
  exporter.export = (spans, done) => {
    for (const { attributes, events, links, status } of spans) {
      for (const one of [{ attributes }, ...events, ...links]) clean(one.attributes);
      if (status.message !== undefined) status.message = redact(status.message);
    }
    send(spans, (result) => {
      if (result.error !== undefined && performance.now() - loggedAt > LOG_FAILURE_EVERY_MS) {
        loggedAt = performance.now();
        log.warn({ err: result.error }, 'traces could not be sent');
      }
      done(result);
    });
  };
  return exporter;
}

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import * as z from 'zod';
import { buildProgram } from '../../src/cli/program.ts';
import { loadConfig } from '../../src/core/config.ts';
import { SECRET_SETTINGS } from '../../src/core/environment.ts';
import { settings } from '../../src/core/settings.ts';
import { captureCli } from '../support/cli.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const documents = parseAllDocuments(read('deploy/kubernetes.yaml'), { merge: true, strict: true });

const Labels = z.record(z.string(), z.string());
const Container = z.object({
  image: z.string(),
  args: z.array(z.string()),
  envFrom: z.tuple([
    z.object({ configMapRef: z.object({ name: z.literal('eod') }) }),
    z.object({ secretRef: z.object({ name: z.literal('eod') }) }),
  ]),
  volumeMounts: z.array(z.object({ name: z.literal('tmp'), mountPath: z.string() })),
});
const Probe = z.object({ httpGet: z.object({ path: z.string(), port: z.literal('http') }) });
const Service = Container.extend({
  ports: z.tuple([z.object({ name: z.literal('http'), containerPort: z.number() })]),
  startupProbe: Probe.extend({ periodSeconds: z.number(), failureThreshold: z.number() }),
  livenessProbe: Probe,
  readinessProbe: Probe,
});
/** The four objects, in the order in which they have to exist. */
const Objects = z.tuple([
  z.object({ apiVersion: z.literal('v1'), kind: z.literal('Namespace') }),
  z.object({ apiVersion: z.literal('v1'), kind: z.literal('ConfigMap'), data: Labels }),
  z.object({
    apiVersion: z.literal('apps/v1'),
    kind: z.literal('Deployment'),
    spec: z.object({
      selector: z.object({ matchLabels: Labels }),
      template: z.object({
        metadata: z.object({ labels: Labels }),
        spec: z.object({
          securityContext: z.object({ runAsNonRoot: z.literal(true), runAsUser: z.number() }),
          initContainers: z.tuple([Container]),
          containers: z.tuple([Service]),
          volumes: z.tuple([z.object({ name: z.literal('tmp') })]),
        }),
      }),
    }),
  }),
  z.object({ apiVersion: z.literal('v1'), kind: z.literal('Service'), spec: z.object({ selector: Labels }) }),
]);
const [, { data }, { spec }, service] = Objects.parse(documents.map((document) => document.toJS()));
const pod = spec.template.spec;
const [migrate] = pod.initContainers;
const [eod] = pod.containers;

test('deploy/kubernetes.yaml is YAML without errors, whose selectors find its pods', () => {
  expect(documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([]);
  expect(spec.template.metadata.labels).toEqual(spec.selector.matchLabels);
  expect(spec.template.metadata.labels).toMatchObject(service.spec.selector);
});

test('the manifest sets settings that exist, and secrets by the secret that docs/operations.md creates', () => {
  expect(Object.keys(data).filter((name) => !(name in settings))).toEqual([]);
  expect(Object.keys(data).filter((name) => (SECRET_SETTINGS as readonly string[]).includes(name))).toEqual(
    [],
  );
  expect(() => loadConfig(data)).not.toThrow();
  expect(data.EOD_HTTP_PORT).toBe(String(eod.ports[0].containerPort));
  expect(data.EOD_DATA_DIR?.startsWith(`${eod.volumeMounts[0]?.mountPath}/`)).toBe(true);
  expect(read('docs/operations.md')).toContain('create secret generic eod --from-env-file=');
});

test('the manifest runs the image of this version, as its user, with commands that exist', async () => {
  const { version } = JSON.parse(read('package.json'));
  expect(pod.securityContext.runAsUser).toBe(Number(/^USER (\d+)$/m.exec(read('Dockerfile'))?.[1]));
  const { cli } = captureCli();
  const program = buildProgram(cli);
  for (const { image, args } of [migrate, eod]) {
    expect(image).toMatch(new RegExp(`/eod-pipeline:${version.replaceAll('.', '\\.')}$`));
    expect(program.commands.map((command) => command.name())).toContain(args[0]);
  }
  const up = program.commands.find((command) => command.name() === 'up');
  // The comment says how a Deployment of workers is made of it.
  expect(read('deploy/kubernetes.yaml')).toContain('[up, --roles, worker]');
  expect(up?.options.find(({ long }) => long === '--roles')?.defaultValue).toContain('worker');
});

test('eod is probed where it listens, and not before it has waited for its servers', () => {
  expect(eod.livenessProbe.httpGet.path).toBe('/healthz');
  expect(eod.readinessProbe.httpGet.path).toBe('/readyz');
  const { periodSeconds, failureThreshold } = eod.startupProbe;
  expect(periodSeconds * failureThreshold * 1_000).toBeGreaterThan(loadConfig({}).EOD_SERVER_PATIENCE_MS);
});

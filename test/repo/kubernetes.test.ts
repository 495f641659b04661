import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import * as z from 'zod';
import { buildProgram, loadCommand } from '../../src/cli/program.ts';
import { loadConfig } from '../../src/core/config.ts';
import { SECRET_SETTINGS } from '../../src/core/environment.ts';
import { settings } from '../../src/core/settings.ts';
import { captureCli } from '../support/cli.ts';
import { pythonWith } from '../support/python.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const FOLDER = join(ROOT, 'deploy', 'kubernetes');
const PARTS = ['base', 'service', 'nightly'] as const;
/** What is applied: each with all of base. */
const WAYS = ['service', 'nightly'] as const;

const read = (...path: string[]) => readFileSync(join(FOLDER, ...path), 'utf8');

const Labels = z.record(z.string(), z.string());
const Named = z.object({ name: z.string() });
/** A secret that an installation may do without, or the file of one that it always has. */
const Variable = z.union([
  z.strictObject({
    name: z.string(),
    valueFrom: z.object({
      secretKeyRef: z.object({ name: z.string(), key: z.string(), optional: z.literal(true) }),
    }),
  }),
  z.strictObject({ name: z.string(), value: z.string() }),
]);
const SecretVolume = z.strictObject({
  secretName: z.string(),
  defaultMode: z.number(),
  items: z.array(z.object({ key: z.string(), path: z.string() })),
});
const Container = z.object({
  image: z.string(),
  args: z.array(z.string()),
  ports: z.array(z.object({ name: z.string(), containerPort: z.number() })).default([]),
  env: z.array(Variable),
  envFrom: z.array(z.object({ configMapRef: Named })),
  startupProbe: z.object({ periodSeconds: z.number(), failureThreshold: z.number() }).optional(),
  livenessProbe: z.object({ httpGet: z.object({ path: z.string(), port: z.string() }) }).optional(),
  readinessProbe: z.object({ httpGet: z.object({ path: z.string(), port: z.string() }) }).optional(),
  resources: z.object({
    requests: z.object({ cpu: z.string(), memory: z.string() }),
    limits: z.object({ memory: z.string() }),
  }),
  securityContext: z.record(z.string(), z.unknown()),
  volumeMounts: z.array(
    z.object({ name: z.string(), mountPath: z.string(), readOnly: z.boolean().optional() }),
  ),
});
const Pod = z.object({
  terminationGracePeriodSeconds: z.number(),
  automountServiceAccountToken: z.boolean(),
  securityContext: z.record(z.string(), z.unknown()),
  containers: z.tuple([Container]),
  volumes: z.tuple([
    z.strictObject({ name: z.literal('tmp'), emptyDir: z.unknown() }),
    z.strictObject({ name: z.literal('secrets'), secret: SecretVolume }),
  ]),
});
const Template = z.object({ metadata: z.object({ labels: Labels }), spec: Pod });
const Resource = z.object({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.object({ name: z.string(), labels: Labels.default({}) }),
  spec: z.looseObject({}).default({}),
  data: z.record(z.string(), z.string()).default({}),
});
type Resource = z.infer<typeof Resource>;

interface Kustomization {
  readonly resources: readonly string[];
  readonly images?: readonly { readonly name: string; readonly newTag: string }[];
  readonly labels?: readonly {
    readonly includeTemplates?: boolean;
    readonly pairs: Readonly<Record<string, string>>;
  }[];
  readonly replacements?: readonly unknown[];
}
const kustomization = (part: string) => parse(read(part, 'kustomization.yaml')) as Kustomization;

/** The resources of a folder as they are written, and as the checks below see them. */
const written = PARTS.flatMap((part) =>
  kustomization(part)
    .resources.filter((file) => !file.startsWith('..'))
    .flatMap((file) => parseAllDocuments(read(part, file)).map((one) => one.toJS() as object)),
);
const resources = written.map((one) => Resource.parse(one));

/** The template of the pods of a resource, where it has any. */
function templateOf({ kind, spec }: Resource): z.infer<typeof Template> | null {
  if (kind === 'Deployment' || kind === 'Job') return Template.parse(spec.template);
  if (kind !== 'CronJob') return null;
  const { jobTemplate } = z
    .object({ jobTemplate: z.object({ spec: z.object({ template: Template }) }) })
    .parse(spec);
  return jobTemplate.spec.template;
}

const templates = resources.flatMap((one) => {
  const template = templateOf(one);
  return template === null ? [] : [{ name: one.metadata.name, resource: one, template, pod: template.spec }];
});
const matches = (selector: unknown, labels: Record<string, string>) =>
  Object.entries(Labels.parse(selector)).every(([name, value]) => labels[name] === value);

/** The file of the package kubernetes-types that declares a version of an API. */
function declaringModule(apiVersion: string): string {
  const [group = '', version] = apiVersion.includes('/') ? apiVersion.split('/') : ['core', apiVersion];
  return join(ROOT, 'node_modules', 'kubernetes-types', group.replace('.k8s.io', ''), `${version}.d.ts`);
}

/** What TypeScript says of resources, by the types that are generated from the published schemas. */
function typeErrors(checked: readonly object[]): string {
  const lines = checked.map((one, at) => {
    const { apiVersion, kind } = Resource.parse(one);
    const type = `import('${declaringModule(apiVersion)}').${kind}`;
    return `export const resource${at}: ${type} = ${JSON.stringify(one)};`;
  });
  const file = join(temporaryFolder(), 'resources.ts');
  writeFileSync(file, lines.join('\n'));
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  const flags = ['--noEmit', '--strict', '--skipLibCheck', '--types', '', '--ignoreConfig'];
  return spawnSync(process.execPath, [compiler, ...flags, file], { encoding: 'utf8' }).stdout;
}

/** Says so if kustomize cannot be run. */
function hasKubectl(): boolean {
  if (spawnSync('kubectl', ['version', '--client']).status === 0) return true;
  process.stderr.write('kubectl is not installed: kustomize was not run\n');
  return false;
}

/** What `kubectl apply -k` would apply. */
function kustomized(folder: string, way: string): string {
  const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', join(folder, way)], {
    encoding: 'utf8',
  });
  expect({ status, stderr }).toMatchObject({ status: 0 });
  return stdout;
}

describe('deploy/kubernetes', () => {
  test('follows the published schemas: no field that is unknown, missing or of another type', () => {
    expect(typeErrors(written)).toBe('');
    const deployment = JSON.stringify(written.find((one) => 'kind' in one && one.kind === 'Deployment'));
    const mistakes: Record<string, string> = {
      readinesProbe: deployment.replace('readinessProbe', 'readinesProbe'),
      selector: deployment.replace('"selector"', '"selectors"'),
      "'string' is not assignable to type 'number'": deployment.replace(
        '"containerPort":8080',
        '"containerPort":"8080"',
      ),
    };
    const said = Object.values(mistakes).map((text) => typeErrors([JSON.parse(text)]));
    for (const [at, name] of Object.keys(mistakes).entries()) expect(said[at]).toContain(name);
  });

  test('follows the published JSON schemas', async () => {
    const python = await pythonWith(['kubernetes-validate>=1.37']);
    if (python === null) return;
    const file = join(temporaryFolder(), 'resources.json');
    for (const one of written) {
      writeFileSync(file, JSON.stringify(one));
      const { status, stderr } = spawnSync(python, ['-m', 'kubernetes_validate', '--strict', file], {
        encoding: 'utf8',
      });
      expect({ status, stderr }).toMatchObject({ status: 0 });
    }
    // What it needs may have to be installed first.
  }, 1_000_000);

  test('every file is part of a kustomization, and kustomize can put them together', () => {
    for (const part of PARTS) {
      const files = readdirSync(join(FOLDER, part)).filter((name) => name !== 'kustomization.yaml');
      const own = kustomization(part).resources.filter((name) => !name.startsWith('..'));
      expect(files.toSorted()).toEqual(own.toSorted());
    }
    for (const way of WAYS) expect(kustomization(way).resources).toContain('../base');
    if (!hasKubectl()) return;
    for (const way of WAYS) expect(kustomized(FOLDER, way)).toContain('eod-migrate');
  });

  test('every object and pod has the recommended labels', () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const common = {
      'app.kubernetes.io/name': 'eod',
      'app.kubernetes.io/instance': 'eod',
      'app.kubernetes.io/version': version,
      'app.kubernetes.io/part-of': 'eod-pipeline',
      'app.kubernetes.io/managed-by': 'kustomize',
    };
    // kustomize adds them to everything in base as well.
    for (const way of WAYS)
      expect(kustomization(way).labels).toEqual([{ includeTemplates: true, pairs: common }]);
    const component = 'app.kubernetes.io/component';
    // These belong to all components.
    const shared = ['Namespace', 'ConfigMap', 'NetworkPolicy'];
    for (const { kind, metadata } of resources) {
      if (shared.includes(kind)) expect(metadata.labels).not.toHaveProperty([component]);
      else expect(metadata.labels[component], metadata.name).toMatch(/^[a-z]+$/);
    }
    for (const { resource, template } of templates)
      expect(template.metadata.labels[component]).toBe(resource.metadata.labels[component]);
    if (!hasKubectl()) return;
    for (const way of WAYS) {
      for (const { metadata, kind, ...rest } of parseAllDocuments(kustomized(FOLDER, way)).map((one) =>
        Resource.parse(one.toJS()),
      )) {
        expect(metadata.labels, `${kind} ${metadata.name}`).toMatchObject(common);
        const template = templateOf({ metadata, kind, ...rest });
        if (template !== null)
          expect(template.metadata.labels).toMatchObject({
            ...common,
            [component]: metadata.labels[component],
          });
      }
    }
  });

  test('the migration can be applied twice, and again with another tag: its name has the tag', () => {
    const [service, nightly] = WAYS.map((way) => kustomization(way).replacements);
    expect(nightly).toEqual(service);
    expect(service).toEqual([
      {
        source: expect.objectContaining({ kind: 'Job', name: 'eod-migrate' }),
        targets: [expect.objectContaining({ fieldPaths: ['metadata.name'] })],
      },
    ]);
    const job = resources.find(({ kind }) => kind === 'Job');
    // A Job with generateName cannot be applied, and one that stays for ever is in the way.
    expect(job?.metadata.name).toBe('eod-migrate');
    expect(job?.spec.ttlSecondsAfterFinished).toBeGreaterThan(0);
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    expect(readFileSync(join(ROOT, 'docs', 'operations.md'), 'utf8')).toContain(`job/eod-migrate-${version}`);
    if (!hasKubectl()) return;
    const copy = temporaryFolder();
    cpSync(FOLDER, copy, { recursive: true });
    const jobOf = (text: string) =>
      parseAllDocuments(text)
        .map((one) => Resource.parse(one.toJS()))
        .find(({ kind }) => kind === 'Job');
    for (const way of WAYS) {
      expect(jobOf(kustomized(FOLDER, way))?.metadata.name).toBe(`eod-migrate-${version}`);
      const file = join(copy, way, 'kustomization.yaml');
      const other = readFileSync(file, 'utf8')
        .replace('registry.example.com/', 'registry.example.com:5000/team/')
        .replace(`newTag: ${version}`, 'newTag: 9.8.7-rc1');
      writeFileSync(file, other);
      const changed = jobOf(kustomized(copy, way));
      expect(changed?.metadata.name).toBe('eod-migrate-9.8.7-rc1');
      expect(JSON.stringify(changed?.spec)).toContain(
        'registry.example.com:5000/team/eod-pipeline:9.8.7-rc1',
      );
    }
  });

  test('every selector finds its pods, and every target is there', () => {
    const podsOf = (selector: unknown) =>
      templates.filter(({ template }) => matches(selector, template.metadata.labels));
    for (const { kind, metadata, spec } of resources) {
      const where = `${kind} ${metadata.name}`;
      const { selector, scaleTargetRef } = spec as {
        selector?: { matchLabels?: unknown };
        scaleTargetRef?: z.infer<typeof Named>;
      };
      if (kind === 'Deployment' || kind === 'PodDisruptionBudget') {
        expect(
          podsOf(selector?.matchLabels).map(({ name }) => name),
          where,
        ).toEqual([metadata.name]);
      }
      if (kind === 'Service')
        expect(
          podsOf(selector).map(({ name }) => name),
          where,
        ).toEqual([metadata.name]);
      if (kind === 'HorizontalPodAutoscaler') {
        expect(
          templates.map(({ name }) => name),
          where,
        ).toContain(scaleTargetRef?.name);
      }
    }
    const policy = resources.find(({ kind }) => kind === 'NetworkPolicy');
    const { podSelector } = z.object({ podSelector: z.object({ matchLabels: Labels }) }).parse(policy?.spec);
    expect(podsOf(podSelector.matchLabels)).toHaveLength(templates.length);
  });

  test('the network policy lets out what the settings name: the source, the servers, webhooks, a collector', () => {
    const egress = z
      .object({ egress: z.array(z.object({ ports: z.array(z.object({ port: z.number() })) })) })
      .parse(resources.find(({ kind }) => kind === 'NetworkPolicy')?.spec).egress;
    const allowed = egress.flatMap(({ ports }) => ports.map(({ port }) => port));
    const source = resources.find(({ kind }) => kind === 'ConfigMap')?.data.EOD_BASE_URL ?? '';
    expect(settings.EOD_BASE_URL.meta()?.description).toContain(`:${new URL(source).port}\``);
    const servers = (['DATABASE_URL', 'REDIS_URL', 'EOD_ALERT_WEBHOOK', 'EOD_HEARTBEAT_URL'] as const).map(
      (name) => z.object({ examples: z.tuple([z.string()]) }).parse(settings[name].meta()).examples[0],
    );
    for (const address of [source, ...servers]) {
      const { port, protocol } = new URL(address);
      expect(allowed, address).toContain(Number(port || { 'https:': 443 }[protocol]));
    }
  });

  test('settings are settings: secrets by reference, the rest in the ConfigMap', () => {
    const [config, ...others] = resources.filter(({ kind }) => kind === 'ConfigMap');
    expect(others).toEqual([]);
    const { DATABASE_URL_FILE: _, ...withoutFiles } = config?.data ?? {};
    expect(() => loadConfig(withoutFiles)).not.toThrow();
    const secret: readonly string[] = SECRET_SETTINGS;
    expect(Object.keys(config?.data ?? {}).filter((name) => secret.includes(name))).toEqual([]);
    const page = readFileSync(join(ROOT, 'docs', 'operations.md'), 'utf8');
    const given = new Set<string>();
    for (const { name, pod } of templates) {
      const [{ env, envFrom, volumeMounts }] = pod.containers;
      expect(
        envFrom.map(({ configMapRef }) => configMapRef.name),
        name,
      ).toEqual([config?.metadata.name]);
      // What every installation has is a file, which is there and which the user of the container can read.
      const { secretName, defaultMode, items } = pod.volumes[1].secret;
      expect(page).toContain(`create secret generic ${secretName} `);
      expect(defaultMode).toBe(0o440);
      expect(pod.securityContext).toMatchObject({ fsGroup: 1000, runAsUser: 1000 });
      const folder = volumeMounts.find((mount) => mount.name === 'secrets')?.mountPath;
      const files = Object.fromEntries([
        ...Object.entries(config?.data ?? {}).filter(([setting]) => setting.endsWith('_FILE')),
        ...env.flatMap((one) => ('value' in one ? [[one.name, one.value] as const] : [])),
      ]);
      expect(files, name).toEqual(
        Object.fromEntries(items.map(({ key, path }) => [`${key}_FILE`, `${folder}/${path}`])),
      );
      const optional = env.flatMap((one) => ('valueFrom' in one ? [one] : []));
      for (const { name: setting, valueFrom } of optional) {
        expect(valueFrom.secretKeyRef).toMatchObject({ key: setting, name: secretName });
      }
      const keys = [...items.map(({ key }) => key), ...optional.map((one) => one.name)];
      expect(new Set(keys).size).toBe(keys.length);
      for (const key of keys) {
        expect(secret).toContain(key);
        expect(page).toContain(key);
        given.add(key);
      }
    }
    // Everything else that is secret may be set, too.
    expect([...given].toSorted()).toEqual([...secret].toSorted());
  });

  test('runs our image, of this version, with commands and roles that there are', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    for (const way of WAYS) {
      expect(kustomization(way).images).toEqual([
        expect.objectContaining({ name: 'eod-pipeline', newTag: version }),
      ]);
    }
    const { cli } = captureCli();
    const program = buildProgram(cli);
    const command = (name: string | undefined) => program.commands.find((one) => one.name() === name);
    const up = command('up');
    if (up !== undefined) await loadCommand(up, cli);
    const roles = up?.options.find(({ long }) => long === '--roles')?.defaultValue;
    const started: string[] = [];
    for (const { pod } of templates) {
      const [{ image, args }] = pod.containers;
      expect(image).toBe('eod-pipeline');
      expect(command(args[0])?.name()).toBe(args[0]);
      if (args[0] === 'up') started.push(args[2] ?? '');
    }
    expect(started.toSorted()).toEqual(roles.toSorted());
  });

  test('nothing runs as root, writes but to /tmp, or talks to the cluster', () => {
    const user = /^USER (\d+)$/m.exec(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'))?.[1];
    for (const { name, pod } of templates) {
      const [container] = pod.containers;
      expect(pod.automountServiceAccountToken, name).toBe(false);
      expect(pod.securityContext, name).toMatchObject({ runAsNonRoot: true, runAsUser: Number(user) });
      expect(container.securityContext, name).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(container.volumeMounts, name).toEqual([
        { name: 'tmp', mountPath: '/tmp' },
        { name: 'secrets', mountPath: '/run/secrets/eod', readOnly: true },
      ]);
      // Within ten seconds it has stopped.
      expect(pod.terminationGracePeriodSeconds, name).toBeGreaterThan(10);
    }
    expect(resources.find(({ kind }) => kind === 'ConfigMap')?.data.EOD_DATA_DIR).toMatch(/^\/tmp\//);
  });

  test('services are probed where they listen, and not before they have waited for their servers', () => {
    const services = templates.filter(({ pod }) => pod.containers[0].args[0] === 'up');
    expect(services).toHaveLength(3);
    const { EOD_SERVER_PATIENCE_MS } = loadConfig({});
    for (const { pod } of services) {
      const [{ ports, startupProbe, livenessProbe, readinessProbe }] = pod.containers;
      expect(ports).toEqual([{ name: 'http', containerPort: 8080 }]);
      expect(livenessProbe?.httpGet).toEqual({ path: '/healthz', port: 'http' });
      expect(readinessProbe?.httpGet).toEqual({ path: '/readyz', port: 'http' });
      const { periodSeconds = 0, failureThreshold = 0 } = startupProbe ?? {};
      expect(periodSeconds * failureThreshold * 1_000).toBeGreaterThan(EOD_SERVER_PATIENCE_MS);
    }
  });
});

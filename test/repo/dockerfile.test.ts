import { existsSync, readFileSync } from 'node:fs';
import { DockerfileParser } from 'dockerfile-ast';
import { validate } from 'dockerfile-utils';
import { describe, expect, test } from 'vitest';

const root = new URL('../../', import.meta.url);
const text = readFileSync(new URL('Dockerfile', root), 'utf8');
const dockerfile = DockerfileParser.parse(text);
const instructions = dockerfile.getInstructions();
const stages = dockerfile.getFROMs();
const lastStage = instructions.slice(instructions.findLastIndex((one) => one.getKeyword() === 'FROM'));
const inLastStage = (keyword: string) => lastStage.filter((one) => one.getKeyword() === keyword);

describe('Dockerfile', () => {
  test('has no fault a linter knows', () => {
    expect(validate(text).map(({ message, range }) => `line ${range.start.line + 1}: ${message}`)).toEqual(
      [],
    );
  });

  test('the linter notices mistakes', () => {
    expect(validate('FROM node:20-slim\nCOPPY a b\nHEALTHCHECK --intervl=3s CMD true')).toHaveLength(2);
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

  test('says which version and commit it holds', () => {
    const [label] = inLastStage('LABEL').map((one) => one.getArgumentsContent() ?? '');
    for (const name of ['title', 'description', 'licenses', 'version', 'revision']) {
      expect(label).toMatch(new RegExp(`org\\.opencontainers\\.image\\.${name}="\\S`));
    }
    const { version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
    expect(inLastStage('ARG').map((one) => one.getArgumentsContent())).toContain(`VERSION=${version}`);
  });

  test('asks /healthz whether it is well', () => {
    const [check] = dockerfile.getHEALTHCHECKs();
    expect(check?.getArgumentsContent()).toContain('process.env.EOD_HTTP_PORT}/healthz');
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

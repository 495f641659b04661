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

  test('builds in one stage and runs in another, both on the promised Node', () => {
    expect(stages.map((stage) => stage.getImage())).toEqual(['node:20-slim', 'node:20-slim']);
    expect(stages[0]?.getBuildStage()).toBe('build');
    expect(
      inLastStage('RUN')
        .map((run) => run.getArgumentsContent())
        .join('\n'),
    ).toContain('npm ci --omit=dev');
  });

  test('runs `eod up` as an ordinary user', () => {
    const user = inLastStage('USER').at(-1)?.getArgumentsContent();
    expect(user).toBe('node');
    expect(inLastStage('ENTRYPOINT')[0]?.getArgumentsContent()).toBe('["node", "bin/eod.mjs"]');
    expect(inLastStage('CMD')[0]?.getArgumentsContent()).toBe('["up"]');
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

import { describe, expect, test } from 'vitest';
import { isDay } from '../../src/core/days.ts';
import { columnComment } from '../../src/declaration/column-comment.ts';
import { expectedDay, GROUPS, partsOf } from '../../src/declaration/operation.ts';
import { buildUrl } from '../../src/extract/build-request.ts';
import { fitsAnyShape } from '../../src/extract/layout.ts';
import { dataSets, operations } from '../../src/operations/index.ts';
import { tables } from '../../src/operations/registry.ts';
import { SETTINGS } from '../extract/support.ts';
import { isSnakeCase, problemsOf } from '../support/names.ts';

// What the types of a declaration cannot say.

const TIME = /^([01]\d|2[0-3]):[0-5]\d$/;

const byName = operations.map((operation) => [operation.name, operation] as const);

describe('every data set', () => {
  test('has a title of its own, a plural of a few words, and a group', () => {
    for (const { name, title = '', group } of dataSets) {
      expect(title, name).toMatch(/^[A-Z][a-z-]+( [a-zA-Z-]+){0,4}$/);
      expect(title.length, name).toBeLessThanOrEqual(32);
      expect(GROUPS, name).toContain(group);
    }
    expect(new Set(dataSets.map(({ title }) => title)).size).toBe(dataSets.length);
    expect(new Set(dataSets.map(({ group }) => group))).toEqual(new Set(GROUPS));
  });

  test.each(dataSets.map((dataSet) => [dataSet.name, dataSet] as const))(
    '%s: its shapes fit its tables',
    (name, dataSet) => {
      expect(name).toMatch(/^\w{1,100}$/);
      expect(dataSet.summary).toMatch(/\S/);
      expect(dataSet.publishedAt).toMatch(TIME);
      for (const { dated, fullSet } of dataSet.shapes) if (fullSet === 'days') expect(dated).toBe(true);
    },
  );
});

describe('every table', () => {
  test.each(tables.map((table) => [table.name, table] as const))(
    '%s has a name and a key by the rules',
    (name, table) => {
      expect(isSnakeCase(name)).toBe(true);
      // Names of functions and indexes add to it, and Postgres shortens those of more than 63 characters.
      expect(name.length).toBeLessThanOrEqual(50);
      expect(table.key).toContain('exchange');
      const problems = table.fields.flatMap((field) =>
        problemsOf({
          kind: 'relation',
          schema: 'market',
          of: name,
          name: field.column,
          isBoolean: field.kind === 'boolean',
          comment: columnComment(field),
        }).map((problem) => `${field.column}: ${problem}`),
      );
      expect(problems).toEqual([]);
    },
  );
});

describe('every operation', () => {
  test.each(byName)('%s: its request and its windows go together', (_name, operation) => {
    const { request, windows, exchanges, schedule, publishedAt } = operation;
    for (const exchange of exchanges) expect(exchange).toMatch(/^[A-Z][A-Z0-9_]*$/);
    expect(exchanges.length).toBeGreaterThan(0);
    const params = request.options.map(({ param }) => param);
    expect(new Set(params).size).toBe(params.length);
    for (const { form } of request.options)
      if (form !== undefined) expect(() => new RegExp(form.pattern)).not.toThrow();
    if (windows.per === 'range') {
      expect(request.dates).toBe('range');
      expect(windows.days).toBeGreaterThan(0);
      expect(windows.ahead ?? 0).toBeGreaterThanOrEqual(0);
    }
    if (windows.per === 'session') expect(['day', 'range']).toContain(request.dates);
    if (windows.per === 'once') expect(request.dates).toBe('none');
    if (windows.per === 'instrument') {
      expect(request.instruments).not.toBe('none');
      const requests = windows.requests(expectedDay());
      for (const { from, to } of requests)
        expect([isDay(from), isDay(to), from <= to]).toEqual([true, true, true]);
      const keys = requests.map(({ variant, from, to }) => `${variant} ${from} ${to}`);
      expect(new Set(keys).size).toBe(keys.length);
    }
    const parts = partsOf(operation);
    if (parts !== undefined) {
      expect(params).toContain(parts.param);
      expect(operation.shapes[0].table.fields.map(({ column }) => column)).toContain(parts.column);
    }
    expect(schedule.at).toMatch(TIME);
    expect(schedule.at >= publishedAt).toBe(true);
  });

  test('requests at a time of its own', () => {
    const times = operations.map(({ schedule }) => schedule.at);
    expect(times.filter((at) => times.indexOf(at) !== times.lastIndexOf(at))).toEqual([]);
  });

  test.each(byName)('%s can request its sample, whose records have one of its shapes', (_name, operation) => {
    const { requested, response } = operation.sample;
    const { searchParams } = new URL(buildUrl(SETTINGS, operation, { ...requested, calledOn: requested.to }));
    expect(searchParams.get('exchange')).toBe(requested.exchange);
    const list = Array.isArray(response)
      ? response
      : (Object.values(Object(response)).find(Array.isArray) ?? [response]);
    for (const record of list) expect(fitsAnyShape(operation, Object.keys(Object(record)))).toBe(true);
  });
});

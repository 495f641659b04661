import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/core/config.ts';
import { dueAt } from '../../src/jobs/runs/read-arrivals.ts';
import { operationNamed } from '../../src/operations/registry.ts';

describe('the data of a day is due', () => {
  const at = (name: string, day: string, settings = {}) =>
    new Date(dueAt(operationNamed(name), day, loadConfig(settings)) * 1000).toISOString();

  test('when its schedule asks for it, on the clocks of EOD_TIMEZONE', () => {
    expect(at('GetBhavCopyCM', '2025-09-12')).toBe('2025-09-12T15:45:00.000Z');
    expect(at('GetBhavCopyCM', '2025-09-12', { EOD_PUBLISHED_AT: '23:00' })).toBe('2025-09-12T17:30:00.000Z');
  });

  test('on the next weekday of a weekly schedule', () => {
    const { schedule } = operationNamed('GetSectoralClassification');
    expect(schedule.on).toBe('saturday');
    expect(at('GetSectoralClassification', '2025-09-10').slice(0, 10)).toBe('2025-09-13');
  });
});

import { test as base } from 'vitest';
import { testDatabase } from '../support/database.ts';

/** A test that may use a database of its own. */
export const test = base.extend('url', async () => (await testDatabase()).url);

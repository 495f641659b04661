import type { BrowserContext, Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { cancelRun } from '../../src/jobs/runs/run-control.ts';
import { checkQuality } from '../../src/quality/check-quality.ts';
import { accessibilityProblems, launchBrowser } from '../support/browser.ts';
import { testDatabase } from '../support/database.ts';
import { backfill, openPipeline, start } from '../support/pipeline.ts';
import { clock, DAY, openDashboard, PATHS, serve } from './dashboard-support.ts';

const EVENT = 'NSE:ABC:2024-02-05:demerger';

const browser = await launchBrowser();
const { pipeline, url } = await openDashboard();

/** A page that keeps what must not happen: requests to others, violations of the policy, dialogs, errors. */
async function watch(context: BrowserContext): Promise<{ page: Page; wrong: string[] }> {
  const page = await context.newPage();
  const wrong: string[] = [];
  page.on('request', (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (protocol !== 'data:' && hostname !== '127.0.0.1') wrong.push(`request: ${request.url()}`);
  });
  page.on('console', (message) => {
    // The browser reports each page that is not there as an error.
    if (/error|warning/.test(message.type()) && !message.text().includes('404')) wrong.push(message.text());
  });
  page.on('pageerror', (error) => wrong.push(error.message));
  page.on('dialog', (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  return { page, wrong };
}

const isWide = (page: Page) =>
  page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);

describe('every page', () => {
  test.each([
    { colorScheme: 'light', rules: 'all', width: 1440, other: 360 },
    { colorScheme: 'dark', rules: 'colors', width: 360, other: 1440 },
  ] as const)(
    'fits, is accessible and keeps to itself: $colorScheme, $width pixels, then $other',
    async ({ colorScheme, rules, width, other }) => {
      const context = await browser.newContext({ colorScheme });
      const { page, wrong } = await watch(context);
      for (const path of PATHS) {
        await page.setViewportSize({ width, height: 900 });
        const response = await page.goto(`${url}${path}`);
        expect([path, response?.status()]).toEqual([path, path === '/no-such-page' ? 404 : 200]);
        expect(await page.locator('h1').count()).toBe(1);
        expect([path, await isWide(page)]).toEqual([path, false]);
        expect([path, await accessibilityProblems(page, rules)]).toEqual([path, []]);
        await page.setViewportSize({ width: other, height: 900 });
        expect([path, other, await isWide(page)]).toEqual([path, other, false]);
      }
      expect(wrong).toEqual([]);
      await context.close();
    },
  );

  test('a table that is wider than a phone has a shadow where there is more', async () => {
    const context = await browser.newContext({ viewport: { width: 360, height: 700 } });
    const page = await context.newPage();
    await page.goto(`${url}/runs/1`);
    const table = page.locator('.scroll').first();
    await table.scrollIntoViewIfNeeded();
    expect(await table.evaluate((element) => element.scrollWidth > element.clientWidth)).toBe(true);
    // The last pixels of the table, without its lines and texts.
    const edge = async () => {
      const box = await table.boundingBox();
      if (box === null) throw new Error('the table is not visible');
      return page.screenshot({ clip: { x: box.x + box.width - 2, y: box.y + 50, width: 2, height: 4 } });
    };
    const more = await edge();
    await table.evaluate((element) => element.scrollTo({ left: element.scrollWidth }));
    expect(Buffer.compare(more, await edge())).not.toBe(0);
    await context.close();
  });

  test('on a phone, issues and runs need no scrolling sideways', async () => {
    const context = await browser.newContext({ viewport: { width: 390, height: 700 } });
    const page = await context.newPage();
    for (const path of ['/issues', '/runs']) {
      await page.goto(`${url}${path}`);
      const table = page.locator('.scroll').first();
      expect(await table.locator('tbody tr').count()).toBeGreaterThan(0);
      expect(await table.evaluate((element) => element.scrollWidth > element.clientWidth)).toBe(false);
    }
    expect(await page.locator('[data-head=State]').first().isVisible()).toBe(true);
    await context.close();
  });

  test('shows what the source has sent as text', async () => {
    const context = await browser.newContext();
    const { page, wrong } = await watch(context);
    for (const path of ['/issues', '/runs/1', `/coverage/GetBhavCopyCM/NSE/${DAY}`]) {
      await page.goto(`${url}${path}`);
      expect(await page.locator('main').innerText()).toContain('<img src=x onerror=alert(1)>');
      expect(await page.locator('img[src="x"]').count()).toBe(0);
    }
    expect(wrong).toEqual([]);
    await context.close();
  });

  test('is whole without scripts, and begins with a link to its content', async () => {
    const context = await browser.newContext({ javaScriptEnabled: false });
    const page = await context.newPage();
    await page.goto(url);
    expect(await page.locator('main').innerText()).toContain('Prices, bhavcopy_cm NSE');
    await page.keyboard.press('Tab');
    expect(await page.locator(':focus').getAttribute('href')).toBe('#main');
    await page.goto(`${url}/coverage/GetBhavCopyCM/NSE`);
    await page.getByRole('link', { name: /^11 September 2025: complete/ }).click();
    expect(new URL(page.url()).pathname).toBe(`/coverage/GetBhavCopyCM/NSE/${DAY}`);
    expect(await page.locator('main').innerText()).toMatch(/Kept responses[\s\S]*SHA-256/);
    await context.close();
  });
});

test('a page refreshes itself, unless somebody is using it', async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.clock.install();
  await page.goto(`${url}/runs`);
  const rows = () => page.locator('tbody tr').count();
  const before = await rows();
  const runId = await start(
    pipeline,
    backfill({ from: '2025-09-01', to: '2025-09-01', operations: ['GetBhavCopyCM'], exchanges: ['BSE'] }),
  );
  await page.locator('tbody a').first().focus();
  await page.clock.runFor(16_000);
  expect(await rows()).toBe(before);
  await page.evaluate(() => (document.activeElement as HTMLElement).blur());
  await page.clock.runFor(16_000);
  await page.waitForFunction((count) => document.querySelectorAll('tbody tr').length > count, before);
  await context.close();
  await cancelRun(pipeline, runId);
});

test('a command in a table can be copied', async () => {
  const context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'] });
  const { page, wrong } = await watch(context);
  await page.goto(`${url}/issues`);
  const command = `eod events set ${EVENT} --factor A:B`;
  await page.getByRole('button', { name: `Copy ${command}` }).click();
  await page.getByRole('button', { name: `Copied ${command}` }).waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(command);
  expect(await accessibilityProblems(page)).toEqual([]);
  expect(wrong).toEqual([]);
  await context.close();
});

test('somebody who has just begun sees what to do, and an unreachable database is reported without its name', async () => {
  const { environment } = pipeline;
  const database = await testDatabase();
  const context = await openPipeline({
    databaseUrl: database.url,
    sourceUrl: environment.EOD_BASE_URL ?? '',
    clock,
  });
  const served = await serve(context);
  expect(await (await fetch(served)).text()).toMatch(/Nothing is loaded yet[\s\S]*eod backfill --all --from/);
  const empty = {
    '/issues': 'eod reconcile',
    '/coverage': 'eod backfill',
  };
  for (const [path, command] of Object.entries(empty)) {
    expect(await (await fetch(`${served}${path}`)).text()).toContain(`<code class="command">${command}`);
  }
  expect(await (await fetch(`${served}/issues`)).text()).toContain('No prices are loaded to check.');
  // That nothing was found says nothing of days that were not checked.
  const fetchIssuesPage = async () => (await fetch(`${served}/issues`)).text();
  const verdict = 'Of 1 day with prices all are checked';
  await context.db.pool.query(
    "insert into etl.coverage (operation, exchange, day, last_position, last_said) values ('GetBhavCopyCM', 'NSE', '2025-09-10', now(), 'loaded')",
  );
  const unchecked = await fetchIssuesPage();
  expect(unchecked).toContain('eod reconcile --from 2025-09-10 --to 2025-09-10');
  expect(unchecked).not.toContain(verdict);
  expect(unchecked).not.toContain('Nothing needs a person');
  await checkQuality(context, { from: '2025-09-10', to: '2025-09-10' });
  expect(await fetchIssuesPage()).toContain(verdict);

  // A database that is unreachable is reported as such, without its name.
  await database.drop();
  const away = await fetch(served);
  expect(away.status).toBeGreaterThanOrEqual(500);
  expect(await away.text()).toMatch(/Something went wrong(?![\s\S]*eod_test)/);
  expect((await fetch(`${served}/healthz`)).status).toBe(200);
});

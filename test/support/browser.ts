import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { type Browser, chromium, type Page } from 'playwright-core';
import { closeAfterFile } from './closing.ts';

const CHROMIUM = '/usr/bin/chromium';

/** Debian's browser, closed after the file. */
export async function launchBrowser(): Promise<Browser> {
  if (!existsSync(CHROMIUM)) {
    throw new Error('no chromium: sudo apt-get install -y --no-install-recommends chromium');
  }
  // In a container there is no user namespace for its sandbox; it shows our own pages alone.
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
  closeAfterFile(() => browser.close());
  return browser;
}

const axeSource = readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const ALL_RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** What axe finds wrong with a page: the rule, and where. `colors`: only what depends on the color scheme. */
export async function accessibilityProblems(page: Page, rules: 'all' | 'colors' = 'all'): Promise<string[]> {
  const runOnly =
    rules === 'all' ? ALL_RULES : { type: 'rule', values: ['color-contrast', 'link-in-text-block'] };
  // Evaluated by the debugger, which no policy of the page keeps out.
  await page.evaluate(await axeSource);
  return page.evaluate(
    async (options) => {
      const { axe } = window as unknown as {
        axe: {
          run(
            options: object,
          ): Promise<{ violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[] }>;
        };
      };
      const { violations } = await axe.run(options);
      return violations.flatMap(({ id, nodes }) =>
        nodes
          .slice(0, 3)
          .map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary ?? ''}`),
      );
    },
    { runOnly },
  );
}

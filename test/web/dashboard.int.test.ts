import { request as httpRequest } from 'node:http';
import { expect, test } from 'vitest';
import { importFiles } from '../../src/jobs/import/import-files.ts';
import { startHttpServer } from '../../src/web/server.ts';
import { clockFrom } from '../reliability/support.ts';
import { startCli } from '../support/cli.ts';
import { closeAfterFile } from '../support/closing.ts';
import { newFile } from '../support/import-support.ts';
import { openPipeline } from '../support/pipeline.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { clock, DAY, logged, openDashboard, PATHS, serve } from './dashboard-support.ts';

const { pipeline, url } = await openDashboard();

/** A page without its markup. */
const textOf = async (path: string, at = url) =>
  (await (await fetch(`${at}${path}`)).text())
    .replaceAll('<wbr/>', '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ');

test('there are four pages in the navigation, and none at another address', async () => {
  const html = await (await fetch(url)).text();
  const links = [...html.matchAll(/<li><a href="([^"]*)"[^>]*>(\w+)<\/a><\/li>/g)];
  expect(links.map(([, path, name]) => `${name} ${path}`)).toEqual([
    'Status /',
    'Coverage /coverage',
    'Runs /runs',
    'Issues /issues',
  ]);
  for (const path of ['/quality', '/freshness', '/rows', '/dictionary', '/data', '/queues'])
    expect((await fetch(`${url}${path}`)).status, path).toBe(404);
  // A data set is found by its table as well.
  expect((await fetch(`${url}/coverage/bhavcopy_cm/NSE`)).status).toBe(200);
});

test('nothing can be changed: no page has a form that posts, and no address takes anything but GET and HEAD', async () => {
  const others = ['/actions/fill-gaps', '/healthz', '/readyz', '/metrics'];
  for (const path of [...PATHS, ...others]) {
    const html = await (await fetch(`${url}${path}`)).text();
    expect(html, path).not.toMatch(/\b(form)?method\s*=\s*["']?post/i);
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      for (const body of [undefined, new URLSearchParams({ decision: 'ignore' }), '{}']) {
        const response = await fetch(`${url}${path}`, { method, body: body ?? null });
        await response.text();
        expect([path, method, response.status]).toEqual([path, method, 405]);
        expect(response.headers.get('allow')).toBe('GET, HEAD');
      }
    }
    const head = await fetch(`${url}${path}`, { method: 'HEAD' });
    expect([path, head.status]).not.toEqual([path, 405]);
    // Who only reads needs no cookie.
    expect(head.headers.get('set-cookie')).toBeNull();
  }
});

test('Status says what is missing and why: data sets by title, in groups', async () => {
  const text = await textOf('/');
  expect(text).toMatch(/\d+ trading days of \d+ data sets are missing/);
  expect(text).toMatch(/Prices, bhavcopy_cm BSE 2025-09-12: not requested yet/);
  expect(text).toMatch(/Series changes, series_changes NSE 2025-09-12: /);
  // The first time of what comes next, with its day: after a Friday night that is on Saturday.
  expect(text).toMatch(/Next 2025-09-13 \d\d:\d\d /);
  expect(text).toMatch(
    / Prices Prices, .* Trading Market totals, .* Fundamentals Daily ratios, .* Ownership Promoter pledges, .* Reference Sectoral /,
  );
  // What is next is folded, and a number that is zero is not shown.
  const html = await (await fetch(url)).text();
  expect(html).toMatch(/<details class="card"><summary><h2 class="inline">Next/);
  expect(html).not.toMatch(/<td class="number">(<[^>]*>)*0</);
  const calendar = await (await fetch(`${url}/coverage/GetSeriesChange/NSE`)).text();
  expect(calendar).toContain('2025-09-10: missing, failed');
  const odd = await (await fetch(`${url}/coverage/GetCircuitBreakers/NSE`)).text();
  expect(odd).toContain(`${DAY}: suspicious`);
});

test('the coverage of a data set names "eod gaps fill" only if the source can still have what is missing', async () => {
  const path = '/coverage/GetSeriesChange/NSE';
  expect(await textOf(path)).toContain('eod gaps fill GetSeriesChange requests what the source still has');
  const files = await openPipeline({ clock });
  const paths = ['2024-05-31', '2024-06-04'].map((day) =>
    newFile(`${day}.csv`, [
      'TradDt,BizDt,Sgmt,Src,FinInstrmTp,FinInstrmId,ISIN,TckrSymb,SctySrs,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd',
      `${day},${day},CM,NSE,STK,1,INE000000011,ABC,EQ,10,10,10,10,10,10,10,100,3`,
    ]),
  );
  await importFiles(files, { paths, force: false });
  const old = await textOf('/coverage/GetBhavCopyCM/NSE?year=2024', await serve(files));
  expect(old).toMatch(/too old for the source : \d+ trading days, .* eod import FILE loads/);
  expect(old).not.toContain('eod gaps fill');
  const { EOD_ACCESS_KEY: _, ...config } = pipeline.config;
  const keyless = await textOf(path, await serve({ ...pipeline, config: config as typeof pipeline.config }));
  expect(keyless).toContain('eod import FILE loads files of the exchanges');
  expect(keyless).not.toContain('eod gaps fill');
});

test('the coverage of a data set shows the records of each trading day and, for prices, the closing prices of a share', async () => {
  const text = await textOf('/coverage/GetBhavCopyCM/NSE');
  expect(text).toMatch(/Prices, bhavcopy_cm .* Records of each trading day 4 trading days, /);
  expect(text).toMatch(/, NSE: closing prices 2025-09-08 to 2025-09-11: /);
  const { rows } = await pipeline.db.pool.query<{ symbol: string; close: string }>(
    `select symbol, min(to_char(close_price, 'FM99999990.00')) as close from market.bhavcopy_cm
      where exchange = 'BSE' and trade_date = $1
        and symbol not in (select symbol from market.bhavcopy_cm where exchange = 'NSE') group by symbol order by symbol limit 1`,
    [DAY],
  );
  const [{ symbol = '', close = '' } = {}] = rows;
  const chosen = await textOf(
    `/coverage/GetBhavCopyCM/BSE?year=2025&symbol=${encodeURIComponent(symbol.toLowerCase())}`,
  );
  expect(chosen).toContain(`${symbol}, BSE: closing prices`);
  expect(chosen).toContain(` to ${close} rupees`);
  expect(await textOf('/coverage/GetBhavCopyCM/BSE?symbol=NOSUCH')).toMatch(
    /NOSUCH, BSE: closing prices no trading day of 2025 .*No prices of NOSUCH are stored in 2025\./,
  );
  expect(await textOf('/coverage/GetBhavCopyCM/BSE?symbol=NOBODY')).toMatch(
    /No prices of NOBODY are stored in \d{4}\./,
  );
  // A data set without data for each trading day has no such charts.
  const quarterly = await textOf('/coverage/GetFinancialRatios/NSE');
  expect(quarterly).toContain('Quarterly ratios, GetFinancialRatios');
  expect(quarterly).not.toContain('Records of each trading day');
});

test('Issues lists what needs a person, each with the command that settles it; a single kind has every detail', async () => {
  const html = await (await fetch(`${url}/issues`)).text();
  const text = await textOf('/issues');
  expect(text).toMatch(/Issues 4 issues: 1 corporate action, 1 finding, 1 reject, 1 suspicious response[;.]/);
  const commands = [...html.matchAll(/<code class="command">([^<]*)/g)].map(([, command]) => command);
  expect(commands).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^eod rejects accept \d+$/),
      expect.stringMatching(/^eod findings accept \d+$/),
      'eod events set NSE:ABC:2024-02-05:demerger --factor A:B',
      `eod backfill GetCircuitBreakers --exchange NSE --from ${DAY} --to ${DAY} --force`,
    ]),
  );
  expect(text).toContain('A:B is shares before : shares after, from the exchange');
  expect(html).toContain(`href="/coverage/GetBhavCopyCM/NSE/${DAY}"`);
  expect(await textOf('/issues?kind=finding')).toMatch(/Expected Found/);
  expect(await textOf('/issues?kind=reject')).toMatch(/Seen last/);
  expect(await textOf('/issues?kind=reject')).not.toContain('demerger');
});

test('commands of a dashboard of the demo have --demo', async () => {
  const server = await startHttpServer(pipeline, {
    roles: ['web'],
    stopping: new AbortController().signal,
    isDemo: true,
  });
  closeAfterFile(() => server.close());
  const html = await (await fetch(`${server.url}/issues`)).text();
  const commands = [...html.matchAll(/<code class="command">([^<]*)/g)].map(([, command]) => command);
  expect(commands.length).toBeGreaterThan(3);
  expect(commands.filter((command) => command?.startsWith('eod --demo ') !== true)).toEqual([]);
});

test('Coverage opens at the latest year with data', async () => {
  const later = await serve({ ...pipeline, clock: clockFrom('2027-03-01T12:00:00+05:30') });
  for (const path of ['/coverage', '/coverage/GetBhavCopyCM/NSE']) {
    const html = await (await fetch(`${later}${path}`)).text();
    expect(html, path).toMatch(/\?year=2027"[\s\S]*<a href="[^"]*\?year=2025" aria-current="true">2025/);
  }
});

test('a password is required where one is set, and guessing is of no use', async () => {
  const closed = await serve(pipeline, { EOD_WEB_PASSWORD: 'correct horse' });
  const status = async (path: string, password?: string) => {
    const authorization = `Basic ${Buffer.from(`ravi:${password}`).toString('base64')}`;
    const response = await fetch(
      `${closed}${path}`,
      password === undefined ? {} : { headers: { authorization } },
    );
    await response.text();
    return response.status;
  };
  for (const path of ['/', '/runs', '/assets/x', '/nowhere']) expect(await status(path)).toBe(401);
  expect(await status('/healthz')).toBe(200);
  expect(await status('/', 'correct horse')).toBe(200);
  for (let at = 0; at < 20; at += 1) expect(await status('/', 'wrong')).toBe(401);
  expect(await status('/', 'correct horse')).toBe(429);
  expect(logged.join('\n')).toContain('"user":"ravi"');
  expect(logged.join('\n')).not.toContain('correct horse');
});

test('behind a proxy, anyone who guesses keeps out only themselves', async () => {
  const status = async (at: string, visitor: string, password: string) => {
    const authorization = `Basic ${Buffer.from(`ravi:${password}`).toString('base64')}`;
    const response = await fetch(at, { headers: { authorization, 'x-forwarded-for': visitor } });
    await response.text();
    return response.status;
  };
  const settings = { EOD_WEB_PASSWORD: 'correct horse' };
  const known = await serve(pipeline, { ...settings, EOD_TRUSTED_PROXIES: ['127.0.0.1'] });
  // What a visitor claims comes before what the proxy adds.
  for (let at = 0; at < 20; at += 1) expect(await status(known, `10.9.9.${at}, 10.0.0.1`, 'wrong')).toBe(401);
  expect(await status(known, '10.0.0.1', 'correct horse')).toBe(429);
  expect(await status(known, '10.0.0.2', 'correct horse')).toBe(200);

  const unknown = await serve(pipeline, settings);
  for (let at = 0; at < 20; at += 1) expect(await status(unknown, `10.0.0.${at}`, 'wrong')).toBe(401);
  expect(await status(unknown, '10.0.0.99', 'correct horse')).toBe(429);
});

test('eod web serves the dashboard beside one that is running', async () => {
  const { DATABASE_URL = '' } = pipeline.environment;
  const env = { DATABASE_URL, EOD_HTTP_PORT: '1', EOD_QUEUE_PREFIX: pipeline.config.EOD_QUEUE_PREFIX };
  const cwd = temporaryFolder();
  const web = startCli(['web', '--port', '0'], { cwd, env });
  const [, address = ''] = await web.output(/dashboard: (http:\S+)/);
  expect(await (await fetch(address)).text()).toContain('No access key is set in this process.');
  expect((await fetch(`${address}healthz`)).status).toBe(200);
  web.signal('SIGTERM');
  expect((await web.ended).code).toBe(0);
});

test('another name for this machine is refused, and every response carries the policy', async () => {
  const { port } = new URL(url);
  const ask = (path: string, host: string) =>
    new Promise<{ status: number | undefined; headers: Record<string, unknown> }>((resolve, reject) => {
      httpRequest({ port, host: '127.0.0.1', path, headers: { host } }, (response) => {
        response.resume();
        resolve({ status: response.statusCode, headers: response.headers });
      })
        .on('error', reject)
        .end();
    });
  expect((await ask('/', 'evil.example')).status).toBe(421);
  expect((await ask('/', `localhost:${port}`)).status).toBe(200);
  expect((await ask('/metrics', 'evil.example')).status).toBe(421);
  expect((await ask('/metrics', `localhost:${port}`)).status).toBe(200);
  expect((await ask('/healthz', 'evil.example')).status).toBe(200);
  expect((await ask('/%00', 'localhost')).status).toBe(400);
  for (const path of ['/', '/no-such-page', '/coverage/x/y', '/runs/x']) {
    const { headers } = await ask(path, 'localhost');
    expect(headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'self';/);
    expect(headers['x-content-type-options']).toBe('nosniff');
  }
});

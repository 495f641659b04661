import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** What the packets of a host suffer, in both directions. */
export interface Disturbance {
  readonly delayMs: number;
  /** By so much the delay differs, up and down. */
  readonly jitterMs: number;
  /** Share of the packets that are lost. */
  readonly dropped: number;
}

export const UNDISTURBED: Disturbance = { delayMs: 0, jitterMs: 0, dropped: 0 };

/** A host of its own: a network namespace with an address, joined to the others by a bridge. */
export interface Host {
  readonly name: string;
  readonly address: string;
  /** The start of a command line that runs the rest of it there. */
  readonly enter: readonly string[];
  /** Pulls the cable out, or puts it in again. */
  setCut(isCut: boolean): void;
  disturb(disturbance: Disturbance): Promise<void>;
}

export interface Network {
  /** Address of this machine on the bridge. */
  readonly address: string;
  readonly hosts: readonly Host[];
  /** What delays and drops: netem of the kernel, or a program where the kernel has none. */
  readonly means: 'netem' | 'wire.py';
  /** Takes everything down again. */
  close(): void;
}

const WIRE = fileURLToPath(new URL('./wire.py', import.meta.url));

/** Nobody else's, we hope: of the range for private use. */
const SUBNET = '10.213.77';
const BRIDGE = 'eodbr0';

const run = (file: string, ...args: string[]) =>
  execFileSync(file, args, { stdio: ['ignore', 'ignore', 'pipe'] });
const ip = (...args: string[]) => run('ip', ...args);
const works = (file: string, ...args: string[]) => spawnSync(file, args, { stdio: 'ignore' }).status === 0;

/** What is missing on this machine for hosts of their own; null where nothing is. */
export function missingForHosts(): string | null {
  if (process.platform !== 'linux') return 'it needs Linux';
  if (process.getuid?.() !== 0) return 'it makes network namespaces and a bridge: run it as root';
  if (!works('ip', '-V') || !works('tc', '-V')) return 'it needs ip and tc: install iproute2';
  if (!works('nsenter', '--version')) return 'it needs nsenter: install util-linux';
  const probe = `eod-probe-${process.pid}`;
  const made = spawnSync('ip', ['netns', 'add', probe], { encoding: 'utf8' });
  if (made.status !== 0) return `network namespaces cannot be made here: ${made.stderr.trim()}`;
  ip('netns', 'del', probe);
  if (!hasNetem() && !works('python3', '--version')) {
    return 'this kernel has no netem (sch_netem), and there is no python3 to delay and drop packets instead';
  }
  return null;
}

function hasNetem(): boolean {
  const probe = `eodp${process.pid % 100_000}`;
  ip('link', 'add', probe, 'type', 'veth', 'peer', 'name', `${probe}b`);
  try {
    return works('tc', 'qdisc', 'add', 'dev', probe, 'root', 'netem', 'delay', '1ms');
  } finally {
    ip('link', 'del', probe);
  }
}

/** Makes hosts of these names. Everything is taken down when the process ends. */
export async function openNetwork(names: readonly string[]): Promise<Network> {
  const undo: (() => void)[] = [];
  const close = () => {
    for (const one of undo.splice(0).reverse()) {
      try {
        one();
      } catch (error) {
        console.error(`could not take down: ${(error as Error).message}`);
      }
    }
  };
  process.once('exit', close);
  ip('link', 'add', BRIDGE, 'type', 'bridge');
  undo.push(() => ip('link', 'del', BRIDGE));
  ip('addr', 'add', `${SUBNET}.1/24`, 'dev', BRIDGE);
  ip('link', 'set', BRIDGE, 'up');
  const means = hasNetem() ? 'netem' : 'wire.py';
  const hosts: Host[] = [];
  for (const [at, name] of names.entries()) {
    const space = `eod-${name}`;
    const address = `${SUBNET}.${at + 2}`;
    ip('netns', 'add', space);
    undo.push(() => ip('netns', 'del', space));
    const inside = (...args: string[]) => ip('-n', space, ...args);
    const cable = { host: `eodh${at}`, bridge: `eodb${at}` };
    const disturb = means === 'netem' ? veth(cable, space) : await wire(cable, undo);
    ip('link', 'set', cable.host, 'netns', space);
    inside('link', 'set', cable.host, 'name', 'eth0');
    inside('addr', 'add', `${address}/24`, 'dev', 'eth0');
    inside('link', 'set', 'eth0', 'up');
    inside('link', 'set', 'lo', 'up');
    ip('link', 'set', cable.bridge, 'master', BRIDGE);
    ip('link', 'set', cable.bridge, 'up');
    hosts.push({
      name,
      address,
      enter: ['nsenter', `--net=/run/netns/${space}`],
      setCut: (isCut) => void ip('link', 'set', cable.bridge, isCut ? 'down' : 'up'),
      disturb,
    });
  }
  return { address: `${SUBNET}.1`, hosts, means, close };
}

interface Cable {
  readonly host: string;
  readonly bridge: string;
}

function veth({ host, bridge }: Cable, space: string): Host['disturb'] {
  ip('link', 'add', bridge, 'type', 'veth', 'peer', 'name', host);
  return async ({ delayMs, jitterMs, dropped }) => {
    const rules = ['netem', 'delay', `${delayMs}ms`, `${jitterMs}ms`, 'loss', `${dropped * 100}%`];
    run('tc', 'qdisc', 'replace', 'dev', bridge, 'root', ...rules);
    run('tc', '-n', space, 'qdisc', 'replace', 'dev', 'eth0', 'root', ...rules);
  };
}

async function wire({ host, bridge }: Cable, undo: (() => void)[]): Promise<Host['disturb']> {
  const program: ChildProcess = spawn('python3', [WIRE, host, bridge], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const { stdin, stdout } = program;
  if (stdin === null || stdout === null) throw new Error('wire.py has no pipes');
  undo.push(() => program.kill('SIGKILL'));
  const lines = createInterface({ input: stdout });
  const ready = (async () => once(lines, 'line'))();
  await Promise.race([
    ready,
    once(program, 'exit').then(() => {
      throw new Error('wire.py ended: is /dev/net/tun there?');
    }),
  ]);
  return async ({ delayMs, jitterMs, dropped }) => {
    const answered = once(lines, 'line');
    stdin.write(`${delayMs} ${jitterMs} ${dropped}\n`);
    await answered;
  };
}

import { createHash, timingSafeEqual } from 'node:crypto';
import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../core/config.ts';
import { isLoopback } from '../core/consistent-settings.ts';
import type { Logger } from '../core/log.ts';

type AccessSettings = Pick<Config, 'EOD_HTTP_HOST' | 'EOD_WEB_PASSWORD'>;

/**
 * How many wrong passwords an address (of IPv6, a network of 64 bits) may send within a minute from its first one,
 * against guessing. Behind a proxy that is not among EOD_TRUSTED_PROXIES, all visitors have one address.
 */
const MAX_WRONG_PASSWORDS = 20;
const WRONG_WITHIN_MS = 60_000;

/** The same for all addresses together; after that, nobody is let in. */
const MAX_WRONG_OF_ALL = 10_000;

/** Headers of all responses of the dashboard. They forbid content from other hosts, and inline scripts and styles. */
const HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self' data:",
    "script-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'cache-control': 'no-store',
} as const;

/**
 * A hook that refuses requests for a name that an attacker's page has bound to this machine (DNS rebinding). With
 * EOD_WEB_PASSWORD it refuses none, because a proxy on this machine may have another name.
 */
export function refuseForeignHosts({ EOD_HTTP_HOST: host, EOD_WEB_PASSWORD: password }: AccessSettings) {
  const localOnly = isLoopback(host) && password === undefined;
  return async (request: FastifyRequest, reply: FastifyReply) => {
    // `localhost` for `localhost:8080`, `[::1]` for `[::1]:8080`.
    if (localOnly && !isLoopback((request.headers.host ?? '').replace(/:\d+$/, ''))) {
      return refuse(reply, 421, 'This address is served on this machine only: open it as localhost.');
    }
    return undefined;
  };
}

/** A hook that refuses every request that could change something: nothing that is served here does. */
export async function refuseWrites(request: FastifyRequest, reply: FastifyReply) {
  if (request.method === 'GET' || request.method === 'HEAD') return undefined;
  return reply.code(405).header('allow', 'GET, HEAD').send({ error: 'GET only' });
}

/** A hook that refuses addresses with a NUL, which is no text for Postgres. */
export async function refuseNul(request: FastifyRequest, reply: FastifyReply) {
  if (request.url.includes('%00')) return refuse(reply, 400, 'The address contains a NUL character (%00).');
  return undefined;
}

/** Refuses requests of foreign hosts, and requests without the password, if EOD_WEB_PASSWORD is set. */
export async function guard(scope: FastifyInstance, config: AccessSettings, log: Logger): Promise<void> {
  const { EOD_WEB_PASSWORD: password } = config;
  await scope.register(rateLimit, { global: false, timeWindow: WRONG_WITHIN_MS, cache: MAX_WRONG_OF_ALL });
  const limits = [
    scope.createRateLimit({ max: MAX_WRONG_PASSWORDS }),
    scope.createRateLimit({ max: MAX_WRONG_OF_ALL, keyGenerator: () => 'all' }),
  ];

  scope.addHook('onRequest', async (_, reply) => {
    reply.headers(HEADERS);
  });
  scope.addHook('onRequest', refuseForeignHosts(config));
  scope.addHook('onRequest', async (request, reply) => {
    if (password === undefined) return;
    const credentials = readCredentials(request);
    if (credentials !== null) {
      const isRight = isEqual(credentials.password, password);
      // Counted before anything else is awaited, or passwords that are sent at once could all be compared before one
      // counts. What a locked-out address sends does not count for all.
      for (const limit of limits) {
        const count = await limit(request, { increment: !isRight });
        if (count.isAllowed || !(count.isExceeded || (isRight && count.remaining === 0))) continue;
        return refuse(reply, 429, 'Too many wrong passwords: try again in a minute.');
      }
      if (isRight) return;
      log.warn({ user: credentials.user, address: request.ip }, 'dashboard: wrong password');
    }
    reply.header('www-authenticate', 'Basic realm="eod", charset="UTF-8"');
    return refuse(reply, 401, 'The dashboard needs a password (EOD_WEB_PASSWORD), with any user name.');
  });
}

async function refuse(reply: FastifyReply, status: number, text: string): Promise<FastifyReply> {
  return reply.code(status).type('text/plain; charset=utf-8').send(`${text}\n`);
}

/** Compares in constant time. */
function isEqual(password: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(password), digest(expected));
}

function readCredentials(
  request: FastifyRequest,
): { readonly user: string; readonly password: string } | null {
  const encoded = /^basic ([a-z0-9+/=]+)$/i.exec(request.headers.authorization ?? '')?.[1];
  if (encoded === undefined) return null;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon < 0 ? null : { user: text.slice(0, colon).slice(0, 100), password: text.slice(colon + 1) };
}

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../core/config.ts';
import { isLoopback } from '../core/consistent-settings.ts';
import type { Logger } from '../core/log.ts';

type AccessSettings = Pick<Config, 'EOD_HTTP_HOST' | 'EOD_WEB_ACTIONS' | 'EOD_WEB_PASSWORD'>;

/**
 * How many wrong passwords an address (of IPv6, a network of 64 bits) may send within a minute from its first one,
 * against guessing. Behind a proxy that is not among EOD_TRUSTED_PROXIES, all visitors have one address.
 */
const MAX_WRONG_PASSWORDS = 20;
const WRONG_WITHIN_MS = 60_000;

/** The same for all addresses together; after that, nobody is let in. */
const MAX_WRONG_OF_ALL = 10_000;

const COOKIE = 'eod_session';

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
  // With `no-referrer` a browser would not say which page a form comes from.
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'cache-control': 'no-store',
} as const;

/** Who sent a request, and whether they may use the buttons. */
export type Access = Awaited<ReturnType<typeof guard>>;

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

/** A hook that refuses addresses with a NUL, which is no text for Postgres. */
export async function refuseNul(request: FastifyRequest, reply: FastifyReply) {
  if (request.url.includes('%00')) return refuse(reply, 400, 'The address contains a NUL character (%00).');
  return undefined;
}

/** Refuses requests of foreign hosts, and requests without the password, if EOD_WEB_PASSWORD is set. */
export async function guard(scope: FastifyInstance, config: AccessSettings, log: Logger) {
  const { EOD_WEB_PASSWORD: password, EOD_WEB_ACTIONS: hasActions } = config;
  // With a password, all processes derive the same secret, so that one accepts the forms of another.
  const secret =
    password === undefined ? randomBytes(32) : createHash('sha256').update(`eod forms ${password}`).digest();
  let isProxyReported = false;
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
    const given = credentialsOf(request);
    if (given !== null) {
      const isRight = isEqual(given.password, password);
      // Counted before anything else is awaited, or passwords that are sent at once could all be compared before one
      // counts. What an address sends that is locked out does not count for all.
      for (const limit of limits) {
        const count = await limit(request, { increment: !isRight });
        if (count.isAllowed || !(count.isExceeded || (isRight && count.remaining === 0))) continue;
        const isOfProxy = request.ips === undefined && request.headers['x-forwarded-for'] !== undefined;
        if (isOfProxy && !isProxyReported) {
          isProxyReported = true;
          log.warn(
            { address: request.ip },
            'dashboard: too many wrong passwords from a proxy keep all of its visitors out (see EOD_TRUSTED_PROXIES)',
          );
        }
        return refuse(reply, 429, 'Too many wrong passwords: try again in a minute.');
      }
      if (isRight) return;
      log.warn({ user: given.user, address: request.ip }, 'dashboard: wrong password');
    }
    reply.header('www-authenticate', 'Basic realm="eod", charset="UTF-8"');
    return refuse(reply, 401, 'The dashboard needs a password (EOD_WEB_PASSWORD), with any user name.');
  });

  const tokenOf = (session: string) => createHmac('sha256', secret).update(session).digest('base64url');
  return {
    /** Who sent a request: the user name of basic authentication, and the address. */
    visitorOf: (request: FastifyRequest) => ({
      user: credentialsOf(request)?.user || 'anybody',
      address: request.ip,
    }),
    /** The token for the forms of this visitor, bound to their cookie; null if there are no buttons. */
    tokenFor(request: FastifyRequest, reply: FastifyReply): string | null {
      if (!hasActions) return null;
      const known = sessionOf(request);
      if (known !== null) return tokenOf(known);
      const session = randomBytes(18).toString('base64url');
      reply.header('set-cookie', `${COOKIE}=${session}; Path=/; HttpOnly; SameSite=Strict`);
      return tokenOf(session);
    },
    /** Why an action is refused; null if it is allowed. */
    refusalOf(request: FastifyRequest, token: unknown): string | null {
      const origin = request.headers.origin ?? '';
      // Only the host is compared, because a proxy in front of us may use TLS.
      const from = URL.canParse(origin) ? new URL(origin).host : null;
      if (from === null || from !== request.headers.host) {
        return 'The form did not come from this dashboard.';
      }
      const session = sessionOf(request);
      if (session === null || typeof token !== 'string' || !isEqual(token, tokenOf(session))) {
        return 'The form is out of date: go back, load the page again, and press the button there.';
      }
      return null;
    },
  };
}

async function refuse(reply: FastifyReply, status: number, text: string): Promise<FastifyReply> {
  return reply.code(status).type('text/plain; charset=utf-8').send(`${text}\n`);
}

/** Compares in constant time. */
function isEqual(one: string, other: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}

function credentialsOf(request: FastifyRequest): { readonly user: string; readonly password: string } | null {
  const encoded = /^basic ([a-z0-9+/=]+)$/i.exec(request.headers.authorization ?? '')?.[1];
  if (encoded === undefined) return null;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon < 0 ? null : { user: text.slice(0, colon).slice(0, 100), password: text.slice(colon + 1) };
}

function sessionOf(request: FastifyRequest): string | null {
  const pattern = new RegExp(`(?:^|;\\s*)${COOKIE}=([\\w-]{20,40})(?:;|$)`);
  return pattern.exec(request.headers.cookie ?? '')?.[1] ?? null;
}

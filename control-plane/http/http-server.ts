import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { World } from '../../shared/lib/world.ts'
import { answerUnreadable } from './unreadable.ts'

/**
 * The time that an idle connection is kept. It is longer than proxies keep theirs (60 s by default): otherwise one sometimes sends
 * a request over a connection that is just being closed here.
 */
const keepAliveMs = 72_000

/** Other upgrade requests than these are ignored, which is allowed: clients that speak HTTP/2 send one with each request. */
export function createHttpServer({
  takesUpgrade,
  world,
}: {
  takesUpgrade: (request: IncomingMessage) => boolean
  world: World
}): Server {
  const server = createServer({ shouldUpgradeCallback: takesUpgrade, keepAliveTimeout: keepAliveMs })
  answerUnreadable(server, world)
  return server
}

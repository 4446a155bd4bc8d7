import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Router } from '@koa/router'
import Database from 'better-sqlite3'
import Koa from 'koa'
import { WebSocketServer } from 'ws'

/** A bare WebSocket that answers what it gets, one that hands it to all others, or a bare Koa that reads the same rows as ours. */
const [kind, argument = ''] = process.argv.slice(2)
const server = kind === 'echo' ? echo() : kind === 'relay' ? relay() : koa(argument)
server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () =>
  process.send?.({ port: (server.address() as AddressInfo).port }),
)
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.({ cpuMs: (user + system) / 1000 })
})

function echo(): Server {
  const http = createServer()
  const sockets = new WebSocketServer({ server: http, perMessageDeflate: false })
  sockets.on('connection', (socket) =>
    socket.on('message', (bytes: Buffer) => socket.send(JSON.stringify(JSON.parse(bytes.toString('utf8'))))),
  )
  return http
}

function relay(): Server {
  const http = createServer()
  const sockets = new WebSocketServer({ server: http, perMessageDeflate: false })
  sockets.on('connection', (socket) =>
    socket.on('message', (bytes: Buffer) => {
      for (const other of sockets.clients) if (other !== socket) other.send(bytes)
    }),
  )
  return http
}

function koa(file: string): Server {
  const db = new Database(file, { readonly: true })
  const caller = db.prepare('select * from login_tokens t join users u on u.id = t.user_id limit 1')
  const run = db.prepare('select * from runs where id = ?')
  const details = db.prepare('select * from run_details where run_id = ?')
  const app = new Koa()
  const router = new Router()
  router.get('/api/v1/runs/:runId', (ctx) => {
    caller.get()
    ctx.body = { ...(run.get(ctx['params'].runId) as object), ...(details.get(ctx['params'].runId) as object) }
  })
  app.use(router.routes())
  const handle = app.callback()
  return createServer((request, response) => void handle(request, response))
}

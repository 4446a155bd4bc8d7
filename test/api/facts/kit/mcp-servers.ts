import { realWorld } from '../../../../shared/lib/world.ts'
import type { TestServer } from '../../../kit/server.ts'

export const newServer = (change: Record<string, unknown> = {}) => ({
  name: realWorld.id('server-'),
  url: 'https://mcp.example.com/mcp',
  headers: { Authorization: 'Bearer ${TRACKER_TOKEN}' },
  ...change,
})

export const makeServer = async (
  { server }: { server: TestServer },
  { token, ...change }: Record<string, unknown> & { token?: string } = {},
): Promise<{ id: string; name: string }> =>
  server.ok('/mcp-servers', { body: newServer(change), ...(token !== undefined && { token }) })

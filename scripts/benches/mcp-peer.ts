import { startMcpServer } from '../../test/kit/mcp-http-server.ts'

/** An MCP server of its own process, which tells its address and ends with the one who started it. */
const server = await startMcpServer()
server.instead = ({ path }, response) => {
  if (!path.endsWith('/slow')) return false
  const answer = { jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: 'said hey' }] } }
  setTimeout(() => response.end(JSON.stringify(answer)), 5)
  return true
}
process.send?.(server.url)
process.on('disconnect', () => process.exit(0))

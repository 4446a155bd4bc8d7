// An MCP server on standard input and output with one tool, `say`, which returns its text, and tells when it was given a
// password that is none of its business. What MCP_WORD holds is said as well.
import { createInterface } from 'node:readline'

const secret = process.env.OPENCODE_SERVER_PASSWORD === undefined ? '' : ' and knows the password'
const word = process.env.MCP_WORD === undefined ? '' : ` with ${process.env.MCP_WORD}`
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'test', version: '1' },
  }),
  'tools/list': () => ({
    tools: [
      {
        name: 'say',
        description: 'Says it.',
        // Some programs ask about no tool that says so.
        annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
        inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
      },
    ],
  }),
  'tools/call': (params) => ({ content: [{ type: 'text', text: `said ${params.arguments.text}${secret}${word}` }] }),
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  const result = answers[method]?.(params) ?? {}
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`)
})

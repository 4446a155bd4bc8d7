import { createHash } from 'node:crypto'

/** SHA-256 (hex) of AGENT.md, by which a writer proves that it knows the text it replaces. */
export const hashAgentMd = (text: string): string => createHash('sha256').update(text).digest('hex')

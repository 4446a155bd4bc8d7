/** Asks on the terminal. Anything but a yes, including Ctrl-C and the end of input, is a no. */
export async function askYesOrNo(question: string): Promise<boolean> {
  const { createInterface } = process.getBuiltinModule('node:readline')
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await new Promise<string>((resolve) => {
    lines.once('close', () => resolve(''))
    lines.once('SIGINT', () => lines.close())
    lines.question(`${question} [y/N] `, resolve)
  })
  lines.close()
  return /^\s*y(es)?\s*$/i.test(answer)
}

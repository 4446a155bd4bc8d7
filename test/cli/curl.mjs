#!/usr/bin/env node
// What pages use of curl, for machines that have none. Refuses what it does not know, and fails where the server refuses.
/** @type {string[]} */
const url = []
/** @type {string[]} */
const data = []
/** @type {{ method: string, headers: Record<string, string> }} */
const options = { method: 'GET', headers: {} }
const words = process.argv.slice(2)
while (words.length > 0) {
  const word = words.shift()
  if (word === '-s' || word === '-N') continue
  if (word === '-X') options.method = words.shift()
  else if (word === '-H') {
    const [name, ...value] = words.shift().split(': ')
    options.headers[name] = value.join(': ')
  } else if (word === '-d') data.push(words.shift())
  else if (word.startsWith('-')) throw new Error(`curl here has no ${word}`)
  else url.push(word)
}
if (url.length !== 1) throw new Error('curl here takes one address')
const answer = await fetch(url[0], data.length === 0 ? options : { ...options, body: data.join('&') })
const text = await answer.text()
process.stdout.write(text)
if (!answer.ok) throw new Error(`${options.method} ${url[0]} answered ${answer.status}: ${text}`)

/** Reads page after page, each behind the last row of the one before, until one is not full. */
export async function* inPages<Row>(
  limit: number,
  read: (page: { after?: Row; limit: number }) => Promise<Row[]>,
): AsyncGenerator<Row[]> {
  let page: Row[] = []
  do {
    const after = page.at(-1)
    page = await read({ limit, ...(after !== undefined && { after }) })
    yield page
  } while (page.length === limit)
}

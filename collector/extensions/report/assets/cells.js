// The waits in cells of time. A series has the cells of one lock, thread and stack; its entries lie
// one after the other. Several cells in a row that are all waited throughout are one entry.

const MAX_BLOCKS = 512;
const MAX_SUMS = 1 << 21;

class Cells {
  /** `heat` describes the bytes, as collector/extensions/report/incident.py does. */
  constructor(heat, bytes) {
    this.cellUs = heat.cell_us;
    this.count = heat.cell_count;
    this.beginMs = heat.begin_ms;
    const total = heat.series.reduce((sum, series) => sum + series[3], 0);
    this.first = new Uint32Array(total);
    this.length = new Uint32Array(total);
    this.us = new Uint32Array(total);
    // The sums of each series in blocks of cells, for the whole time.
    const most = Math.max(16, Math.floor(MAX_SUMS / Math.max(1, heat.series.length)));
    this.block = Math.max(1, Math.ceil(this.count / Math.min(MAX_BLOCKS, most)));
    this.blocks = Math.ceil(this.count / this.block);
    const planes = Array.from({ length: heat.step_size + heat.value_size }, (_, number) =>
      bytes.subarray(number * total, (number + 1) * total));
    this.steps = planes.slice(0, heat.step_size);
    this.values = planes.slice(heat.step_size);
    // One array for all series: thousands of small ones keep the garbage collector busy.
    const sums = new Float64Array(heat.series.length * this.blocks);
    let begin = 0;
    this.series = heat.series.map(([lock, tid, stack, count], number) => {
      const series = {
        lock, tid, stack, begin, end: begin + count, us: 0,
        sums: sums.subarray(number * this.blocks, (number + 1) * this.blocks),
      };
      begin += count;
      this.decode(series);
      return series;
    });
  }

  decode(series) {
    const { first, length, us, cellUs, block } = this;
    const { sums } = series;
    const [s0, s1, s2, s3] = this.steps;
    const [v0, v1, v2, v3] = this.values;
    let cell = 0;
    for (let i = series.begin; i < series.end; i++) {
      let step = s0[i];
      if (s1) step |= s1[i] << 8;
      if (s2) step |= s2[i] << 16;
      if (s3) step |= s3[i] << 24;
      let value = v0[i];
      if (v1) value |= v1[i] << 8;
      if (v2) value |= v2[i] << 16;
      if (v3) value = (value | (v3[i] << 24)) >>> 0;
      cell += step >>> 1;
      first[i] = cell;
      if (step & 1) {
        length[i] = value;
        us[i] = cellUs;
        let position = cell;
        for (let left = value; left > 0; ) {
          const number = Math.floor(position / block);
          const part = Math.min(left, (number + 1) * block - position);
          sums[number] += part * cellUs;
          position += part;
          left -= part;
        }
      } else {
        length[i] = 1;
        us[i] = value;
        sums[(cell / block) | 0] += value;
      }
    }
    for (let number = 0; number < sums.length; number++) series.us += sums[number];
  }

  /** Return the moment in milliseconds where a cell begins. */
  timeMs(cell) {
    return this.beginMs + (cell * this.cellUs) / 1000;
  }

  isWhole(from, to) {
    return from === 0 && to === this.count;
  }

  /** Call `add(cell, microseconds, cells)` for each entry of a series, cut at the span. */
  each(series, from, to, add) {
    const { first, length, us } = this;
    let low = series.begin;
    let high = series.end;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (first[middle] < from) low = middle + 1;
      else high = middle;
    }
    while (low > series.begin && first[low - 1] + length[low - 1] > from) low--;
    for (let i = low; i < series.end && first[i] < to; i++) {
      const begin = Math.max(first[i], from);
      add(begin, us[i], Math.min(first[i] + length[i], to) - begin);
    }
  }

  /** Return the microseconds of a series in a span. */
  sum(series, from, to) {
    if (this.isWhole(from, to)) return series.us;
    let sum = 0;
    this.each(series, from, to, (cell, us, cells) => (sum += us * cells));
    return sum;
  }

  /**
   * Return the microseconds of a span in columns, by a key of the series. Of the whole time, a
   * column must have a whole number of blocks.
   */
  rows(key, from, to, perColumn) {
    const columns = Math.ceil((to - from) / perColumn);
    const rows = new Map();
    for (const series of this.series) {
      let row = rows.get(series[key]);
      if (!row) rows.set(series[key], (row = new Float64Array(columns)));
      if (this.isWhole(from, to)) {
        const { sums } = series;
        const blocks = perColumn / this.block;
        for (let column = 0, number = 0; number < sums.length; column++) {
          const end = Math.min(sums.length, number + blocks);
          while (number < end) row[column] += sums[number++];
        }
        continue;
      }
      this.each(series, from, to, (cell, us, cells) => {
        let offset = cell - from;
        while (cells > 0) {
          const column = Math.floor(offset / perColumn);
          const part = Math.min(cells, (column + 1) * perColumn - offset);
          row[column] += us * part;
          offset += part;
          cells -= part;
        }
      });
    }
    return rows;
  }

  /** Return the series of a lock or a thread; all if `value` is null. */
  chosen(key, value) {
    return value === null ? this.series : this.series.filter((series) => series[key] === value);
  }

  /** Return the microseconds of a span by stack. */
  stacks(chosen, from, to) {
    const sums = new Map();
    for (const series of chosen) {
      const us = this.sum(series, from, to);
      if (us) sums.set(series.stack, (sums.get(series.stack) || 0) + us);
    }
    return sums;
  }
}

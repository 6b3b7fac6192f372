// What is wrong with how a page looks, as sentences. Tests run it inside the page, which is not scrolled.
"use strict";
window.pageChecks = (() => {
  const SMALLEST = 9; // px of a font on the screen
  const COVERED = 0.75; // px by which two texts may touch
  const OFF = 1; // px by which a box may be off, because browsers round
  const LARGE = 24, LARGE_BOLD = 18.66; // px from which on text is large: WCAG 2.2, 1.4.3
  const NARROW = 600; // px of a window up to which it is a phone
  const MOST = 30; // findings of one kind

  const all = (selector, root = document.body) => Array.from(root.querySelectorAll(selector));
  const isShown = (each) => each.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const short = (text) => { const one = text.trim().replace(/\s+/g, " "); return one.length > 50 ? one.slice(0, 49) + "…" : one; };
  const px = (value) => Math.round(value * 10) / 10;

  // Where something is: the title of its chart or section.
  const place = (each) => {
    const titled = each.closest("details, figure, section, .answer, .doubts, header, footer");
    const title = titled?.querySelector("summary, figcaption, h1, h2, h3");
    return `in "${short(title?.textContent ?? titled?.className ?? "the page")}"`;
  };
  const name = (each) => `<${each.localName}${each.classList.length ? "." + [...each.classList].join(".") : ""}> "${short(each.textContent)}"`;

  // ------------------------------------------------------------------------------------------------ what scrolls

  const scrollers = new Map();
  // The nearest ancestor whose contents may be wider than it is, because its user can scroll it sideways.
  const scroller = (each) => {
    if (!each || each === document.body || each === document.documentElement) return null;
    if (!scrollers.has(each)) {
      const scrolls = ["auto", "scroll"].includes(getComputedStyle(each).overflowX);
      scrollers.set(each, scrolls ? each : scroller(each.parentElement));
    }
    return scrollers.get(each);
  };
  const overflows = (each) => {
    const style = getComputedStyle(each);
    const may = (overflow) => ["auto", "scroll"].includes(overflow);
    return (may(style.overflowX) && each.scrollWidth > each.clientWidth + OFF)
      || (may(style.overflowY) && each.scrollHeight > each.clientHeight + OFF);
  };

  // Charts always fit; in a narrow window only tables may be wider than it is.
  const mayScroll = (each) => each.classList.contains("scroll") || (innerWidth > NARROW && !each.classList.contains("chart"));

  // ------------------------------------------------------------------------------------------------ pieces of text

  const canvas = document.createElement("canvas").getContext("2d");
  const fontOf = (style) => `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  // How much of the height of a line of text has ink: shares of the height, from its top.
  const inkOf = (text, style) => {
    canvas.font = fontOf(style);
    const measured = canvas.measureText(text);
    const ascent = measured.fontBoundingBoxAscent, whole = ascent + measured.fontBoundingBoxDescent;
    return [(ascent - measured.actualBoundingBoxAscent) / whole, (ascent + measured.actualBoundingBoxDescent) / whole];
  };
  // A line of text as the four corners of its ink on the screen.
  const piece = (text, node, element, box, style, matrix) => {
    const [from, to] = inkOf(text, style);
    const top = box.y + from * box.height, bottom = box.y + to * box.height;
    const corners = [[box.x, top], [box.x + box.width, top], [box.x + box.width, bottom], [box.x, bottom]]
      .map(([x, y]) => { const at = matrix ? new DOMPoint(x, y).matrixTransform(matrix) : { x, y }; return [at.x, at.y]; });
    const xs = corners.map((at) => at[0]), ys = corners.map((at) => at[1]);
    return { text, node, element, corners, style, left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys) };
  };
  const union = (boxes) => {
    const left = Math.min(...boxes.map((box) => box.x)), top = Math.min(...boxes.map((box) => box.y));
    const right = Math.max(...boxes.map((box) => box.x + box.width)), bottom = Math.max(...boxes.map((box) => box.y + box.height));
    return { x: left, y: top, width: right - left, height: bottom - top };
  };
  const drawnPieces = () => {
    const found = [];
    for (const text of all("svg text").filter(isShown)) {
      const matrix = text.getScreenCTM();
      const parts = text.children.length ? Array.from(text.children) : [text];
      for (const part of parts) {
        if (!part.textContent.trim()) continue;
        const length = part.getNumberOfChars();
        const box = part === text ? text.getBBox() : union(Array.from({ length }, (_, at) => part.getExtentOfChar(at)));
        found.push(piece(part.textContent.trim(), text, part, box, getComputedStyle(part), matrix));
      }
    }
    return found;
  };
  const writtenPieces = () => {
    const found = [], range = document.createRange();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT, (node) =>
      node.data.trim() && !node.parentElement.closest("svg, script, style") ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_REJECT);
    while (walker.nextNode()) {
      const node = walker.currentNode, element = node.parentElement;
      if (!isShown(element)) continue;
      range.selectNodeContents(node);
      const style = getComputedStyle(element);
      for (const box of range.getClientRects()) {
        if (box.width > 0 && box.height > 0) found.push(piece(node.data.trim(), node, element, box, style));
      }
    }
    return found;
  };
  // The part that containers which scroll do not hide; null if they hide all of it.
  const clipped = (each) => {
    let { left, right, top, bottom } = each;
    for (let outer = scroller(each.element); outer; outer = scroller(outer.parentElement)) {
      const box = outer.getBoundingClientRect();
      left = Math.max(left, box.left);
      right = Math.min(right, box.right);
      top = Math.max(top, box.top);
      bottom = Math.min(bottom, box.bottom);
    }
    if (left >= right || top >= bottom) return null;
    const hidden = Math.max(left - each.left, each.right - right, top - each.top, each.bottom - bottom);
    const corners = [[left, top], [right, top], [right, bottom], [left, bottom]];
    return hidden <= OFF ? each : { ...each, corners, left, right, top, bottom };
  };

  // ------------------------------------------------------------------------------------------------ overflow

  const overflow = () => {
    const found = [], wide = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth > wide) {
      found.push(`the page is ${document.documentElement.scrollWidth} px wide in a window of ${wide} px`);
    }
    for (const each of all("*").filter(isShown)) {
      if (each.ownerSVGElement) continue;
      const box = each.getBoundingClientRect(), outer = scroller(each.parentElement);
      if (!box.width || !box.height) continue;
      if (!outer && (box.left < -OFF || box.right > wide + OFF)) {
        found.push(`${name(each)} reaches from ${px(box.left)} to ${px(box.right)} px in a window of ${wide} px ${place(each)}`);
      }
      const style = getComputedStyle(each);
      if (scroller(each) === each && each.scrollWidth > each.clientWidth + OFF && !mayScroll(each)) {
        found.push(`${name(each)} scrolls sideways by ${each.scrollWidth - each.clientWidth} px ${place(each)}`);
      }
      if (["hidden", "clip"].includes(style.overflowX) && each.scrollWidth > each.clientWidth + OFF) {
        found.push(`${name(each)} hides ${each.scrollWidth - each.clientWidth} px of its width ${place(each)}`);
      }
    }
    for (const each of [...drawnPieces(), ...writtenPieces()]) {
      const outer = scroller(each.element);
      if (!outer && (each.left < -OFF || each.right > wide + OFF)) {
        found.push(`"${short(each.text)}" reaches from ${px(each.left)} to ${px(each.right)} px in a window of ${wide} px ${place(each.element)}`);
      }
      if (!outer) continue;
      const box = outer.getBoundingClientRect();
      const right = each.right - box.left + outer.scrollLeft, bottom = each.bottom - box.top + outer.scrollTop;
      if (each.left < box.left - outer.scrollLeft - OFF || right > outer.scrollWidth + OFF || bottom > outer.scrollHeight + OFF) {
        found.push(`"${short(each.text)}" cannot be scrolled to ${place(each.element)}`);
      }
    }
    return found.slice(0, MOST);
  };

  // ------------------------------------------------------------------------------------------------ texts over texts

  // By how many pixels two convex shapes overlap at least, whichever way one looks (separating axes); 0 where they do not.
  const depth = (one, other) => {
    let least = Infinity;
    for (const corners of [one, other]) {
      for (let at = 0; at < 2; at += 1) {
        const [[x1, y1], [x2, y2]] = [corners[at], corners[at + 1]];
        const length = Math.hypot(x2 - x1, y2 - y1) || 1;
        const along = (shape) => shape.map(([x, y]) => (x * (x2 - x1) + y * (y2 - y1)) / length);
        const [ours, theirs] = [along(one), along(other)];
        least = Math.min(least, Math.max(...ours) - Math.min(...theirs), Math.max(...theirs) - Math.min(...ours));
        if (least <= 0) return 0;
      }
    }
    return least;
  };
  const overlaps = () => {
    const found = [];
    const pieces = [...drawnPieces(), ...writtenPieces()].map(clipped).filter(Boolean).sort((a, b) => a.top - b.top);
    let open = [];
    for (const each of pieces) {
      open = open.filter((other) => other.bottom > each.top);
      for (const other of open) {
        if (other.node === each.node && other.element === each.element) continue;
        if (other.left >= each.right || each.left >= other.right) continue;
        const covered = depth(each.corners, other.corners);
        if (covered > COVERED) found.push(`"${short(other.text)}" and "${short(each.text)}" overlap by ${px(covered)} px ${place(each.element)}`);
      }
      open.push(each);
      if (found.length >= MOST) break;
    }
    return found;
  };

  // ------------------------------------------------------------------------------------------------ size

  const scaleOf = (matrix) => Math.sqrt(Math.abs(matrix.a * matrix.d - matrix.b * matrix.c));
  const smallText = (smallest = SMALLEST) => {
    const sizes = new Map();
    for (const each of [...drawnPieces(), ...writtenPieces()]) {
      const drawn = each.element.closest("text");
      const size = parseFloat(each.style.fontSize) * (drawn ? scaleOf(drawn.getScreenCTM()) : 1);
      if (size < smallest - 0.05) {
        const key = `${px(size)} px ${place(each.element)}`;
        sizes.set(key, [...(sizes.get(key) ?? []), each.text]);
      }
    }
    return Array.from(sizes, ([key, texts]) => `${texts.length} texts such as "${short(texts[0])}" are set in ${key}`).slice(0, MOST);
  };

  // ------------------------------------------------------------------------------------------------ contrast

  const colour = (text) => {
    const number = "([-\\d.e]+)";
    const legacy = text.match(/^rgba?\(([\d.]+), ([\d.]+), ([\d.]+)(?:, ([\d.e-]+))?\)$/);
    if (legacy) return [...legacy.slice(1, 4).map((each) => each / 255), Number(legacy[4] ?? 1)];
    const modern = text.match(new RegExp(`^color\\(srgb ${number} ${number} ${number}(?: / ${number})?\\)$`));
    if (modern) return [...modern.slice(1, 4).map((each) => Math.min(1, Math.max(0, Number(each)))), Number(modern[4] ?? 1)];
    throw new Error(`cannot read the colour ${text}`);
  };
  const over = ([r, g, b, alpha], below) => [r, g, b].map((value, at) => alpha * value + (1 - alpha) * below[at]);
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const papers = new Map();
  const paper = (each) => {
    if (!each) return [1, 1, 1];
    if (!papers.has(each)) {
      const style = getComputedStyle(each);
      if (style.backgroundImage !== "none") throw new Error(`${name(each)} has a picture as its background`);
      papers.set(each, over(colour(style.backgroundColor), paper(each.parentElement)));
    }
    return papers.get(each);
  };
  const painted = (style, property) => {
    const value = style[property];
    return value === "none" ? null : colour(/^currentcolor$/i.test(value) ? style.color : value);
  };
  // Opacities of an element of a drawing and of the groups that it is in, multiplied.
  const opacityOf = (each) => {
    let opacity = 1;
    for (; each && each.localName !== "div"; each = each.parentElement) opacity *= Number(getComputedStyle(each).opacity);
    return opacity;
  };
  const shapesOf = (svg) => all("rect, path, circle", svg).filter((each) => !each.closest("defs, clipPath")).flatMap((each) => {
    const fill = painted(getComputedStyle(each), "fill"), box = each.getBoundingClientRect();
    if (!fill || !box.width || !box.height) return [];
    const alpha = fill[3] * Number(getComputedStyle(each).fillOpacity) * opacityOf(each);
    return alpha > 0 ? [{ each, box, fill: [...fill.slice(0, 3), alpha], matrix: null }] : [];
  });
  // What is painted under a point of a text, by the shapes that come before it in its drawing.
  // What surrounds the letters of a text whose outline is painted first; null where none is.
  const haloOf = (style) =>
    style.paintOrder.startsWith("stroke") && parseFloat(style.strokeWidth) >= 2 ? painted(style, "stroke") : null;
  const under = (shapes, text, x, y, below) => {
    for (const shape of shapes) {
      const { box, each } = shape;
      if (x < box.left || x > box.right || y < box.top || y > box.bottom) continue;
      if (!(each.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING)) continue;
      shape.matrix ??= each.getScreenCTM().inverse();
      if (each.isPointInFill(new DOMPoint(x, y).matrixTransform(shape.matrix))) below = over(shape.fill, below);
    }
    return below;
  };
  const contrast = () => {
    papers.clear();
    const found = new Map(), drawings = new Map();
    const note = (each, value, size) => {
      const bold = Number(each.style.fontWeight) >= 700;
      const least = size >= LARGE || (bold && size >= LARGE_BOLD) ? 3 : 4.5;
      if (value < least) {
        const key = `${px(value)}:1, not ${least}:1, ${place(each.element)}`;
        found.set(key, [...(found.get(key) ?? []), each.text]);
      }
    };
    for (const each of writtenPieces()) {
      const below = paper(each.element);
      note(each, ratio(over(colour(each.style.color), below), below), parseFloat(each.style.fontSize));
    }
    for (const each of drawnPieces()) {
      const text = each.element.closest("text"), svg = text.ownerSVGElement;
      if (!drawings.has(svg)) drawings.set(svg, shapesOf(svg));
      const fill = painted(each.style, "fill");
      if (!fill) continue;
      const ink = [...fill.slice(0, 3), fill[3] * Number(each.style.fillOpacity) * opacityOf(each.element)];
      const [a, b, c, d] = each.corners;
      const at = (share) => [0, 1].map((axis) => (1 - share) * (a[axis] + d[axis]) / 2 + share * (b[axis] + c[axis]) / 2);
      const ratios = [0.1, 0.5, 0.9].map((share) => {
        const behind = under(drawings.get(svg), text, ...at(share), paper(svg.parentElement)), halo = haloOf(each.style);
        const below = halo ? over(halo, behind) : behind;
        return ratio(over(ink, below), below);
      });
      note(each, Math.min(...ratios), parseFloat(each.style.fontSize) * scaleOf(text.getScreenCTM()));
    }
    return Array.from(found, ([key, texts]) => `${texts.length} texts such as "${short(texts[0])}" have ${key}`).slice(0, MOST);
  };

  // ------------------------------------------------------------------------------------------------ keyboard

  const CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex]";
  let stops = [];
  // Everything that a keyboard must reach, in the order of the page: controls, and what scrolls without one in it.
  const findStops = () => {
    const controls = new Set(all(CONTROLS).filter((each) => each.tabIndex >= 0));
    stops = all("*").filter((each) => !each.ownerSVGElement && isShown(each))
      .filter((each) => controls.has(each) || (overflows(each) && !all(CONTROLS, each).some((inner) => controls.has(inner))));
    return stops.map(name);
  };
  // The number of the stop that has the focus, its name, and what is wrong with how that looks.
  const focused = () => {
    const each = document.activeElement, at = stops.indexOf(each);
    if (at < 0) return { at, name: name(each), wrong: [] };
    papers.clear();
    const style = getComputedStyle(each), wrong = [], box = each.getBoundingClientRect();
    if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) {
      wrong.push(`${name(each)} has no outline of 2 px`);
    } else {
      const below = paper(each.parentElement), value = ratio(over(colour(style.outlineColor), below), below);
      if (value < 3) wrong.push(`the outline of ${name(each)} has ${px(value)}:1`);
    }
    if (box.bottom < 0 || box.top > innerHeight) wrong.push(`${name(each)} has the focus outside of the window`);
    return { at, name: name(each), wrong };
  };

  // ------------------------------------------------------------------------------------------------ first screen

  const INTERVAL = /\[[-+−]?\d[^\]]*,\s[^\]]*\]|between\s[^:]*?\sand\s[-+−\d.,\s]+%/;
  // Pixels from the top to the lower edge of what a reader looks for first; null for what is not there.
  const bottoms = () => {
    const bottom = (...each) => (each.length ? Math.max(...each.map((one) => one.getBoundingClientRect().bottom)) : null);
    const said = all(".answer > p:not(.alarm):not(.minor):not(.caption):not(.key)");
    const first = said.slice(0, 1);
    return {
      answer: bottom(...first),
      interval: bottom(...first.filter((each) => INTERVAL.test(each.textContent))),
      controls: bottom(...all(".answer > p.control")),
      matrix: bottom(...all(".answer > .scroll")),
    };
  };
  // On paper nothing scrolls, stays in its place, is higher than a page, or is broken where it must not be.
  const paged = (most) => {
    const found = [];
    for (const each of all("*").filter(isShown)) {
      const style = getComputedStyle(each), box = each.getBoundingClientRect();
      if (["sticky", "fixed"].includes(style.position)) found.push(`${name(each)} is ${style.position} ${place(each)}`);
      if (!each.ownerSVGElement && overflows(each)) found.push(`${name(each)} scrolls ${place(each)}`);
      if (each.localName === "svg" && box.height > most + OFF) found.push(`a chart is ${px(box.height)} px high ${place(each)}`);
      if (["svg", "tr", "h2", "h3"].includes(each.localName) && style.breakInside !== "avoid") found.push(`${name(each)} may be broken ${place(each)}`);
    }
    return found.slice(0, MOST);
  };
  const openAll = () => all("details").forEach((each) => { each.open = true; });

  return { overflow, overlaps, smallText, contrast, findStops, focused, bottoms, paged, openAll };
})();

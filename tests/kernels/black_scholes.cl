// European option prices. The normal distribution is Abramowitz & Stegun 26.2.17.

float polynomial(float k) {
    float p = 1.330274429f;
    p = fma(p, k, -1.821255978f);
    p = fma(p, k, 1.781477937f);
    p = fma(p, k, -0.356563782f);
    p = fma(p, k, 0.319381530f);
    return p * k;
}

float cumulative_normal(float d) {
    float k = 1.0f / fma(0.2316419f, fabs(d), 1.0f);
    float tail = 0.39894228040f * exp(-0.5f * d * d) * polynomial(k);
    return d > 0.0f ? 1.0f - tail : tail;
}

kernel void black_scholes(global float *call_price, global float *put_price,
                          global const float *spot, global const float *strike,
                          global const float *years, float rate, float volatility) {
    int i = get_global_id(0);
    float s = spot[i], x = strike[i], t = years[i];
    float root = sqrt(t);
    float d1 = (log(s / x) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root);
    float d2 = d1 - volatility * root;
    float n1 = cumulative_normal(d1);
    float n2 = cumulative_normal(d2);
    float discounted = x * exp(-rate * t);
    call_price[i] = s * n1 - discounted * n2;
    put_price[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
}

float cumulative_normal_native(float d) {
    float k = native_recip(fma(0.2316419f, fabs(d), 1.0f));
    float tail = 0.39894228040f * native_exp(-0.5f * d * d) * polynomial(k);
    return d > 0.0f ? 1.0f - tail : tail;
}

kernel void black_scholes_native(global float *call_price, global float *put_price,
                                 global const float *spot, global const float *strike,
                                 global const float *years, float rate, float volatility) {
    int i = get_global_id(0);
    float s = spot[i], x = strike[i], t = years[i];
    float root = native_sqrt(t);
    float drift = (rate + 0.5f * volatility * volatility) * t;
    float d1 = native_divide(native_log(native_divide(s, x)) + drift, volatility * root);
    float d2 = d1 - volatility * root;
    float n1 = cumulative_normal_native(d1);
    float n2 = cumulative_normal_native(d2);
    float discounted = x * native_exp(-rate * t);
    call_price[i] = s * n1 - discounted * n2;
    put_price[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
}
